"""`webdyno run … --replicates N`: the whole experiment on several hosts of a cluster."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pydantic import ValidationError

from webdyno.cli.console import tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import RunFlags
from webdyno.cli.fleet import show_fleet
from webdyno.cli.progress import so_far_words
from webdyno.definitions import Catalogue
from webdyno.definitions.refusal import first_fault
from webdyno.model.cluster import FLEET_FILE, FleetHead
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.format import count
from webdyno.model.mistake import Mistake, Trouble
from webdyno.run.folder import HEAD_FILE, RECORDS_FILE, RunFolder

if TYPE_CHECKING:  # Ray is an extra, and takes a second to import
    from webdyno.cluster.host import Host
    from webdyno.cluster.replicates import Fleet, Replicated

PAGE_FILE = "fleet.html"
TOLD_APART = 20
"""Of so many hosts each is told of by itself, and gets a report of its own."""
BLOCK = b'{"kind":"block"'
"""How the record of a finished block begins; see `run.hidden.line_of`."""


def replicate(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    run: RunFlags,
    *,
    replicates: int,
) -> Exit:
    """Run an experiment on several hosts at once, and say how far the verdict carries."""
    from webdyno.run.repeat import keep_for_repeating
    from webdyno.run.session import folder_under_runs

    if run.fail_on:
        raise Mistake("--fail-on asks a single run: leave it out, or --replicates")
    if replicates < 2:
        raise Mistake(f"--replicates {replicates}: two hosts or more say something of others")
    folder = out or folder_under_runs(name, datetime.now().astimezone())
    with _fleet_on(run.cluster, folder, set(), replicates) as fleet:
        _make(folder)
        keep_for_repeating(folder, experiment, catalogue)
        head = FleetHead(name=name, replicates=replicates)
        (folder / FLEET_FILE).write_text(head.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return _measure(fleet, head, replicates, run)


def go_on(folder: Path, run: RunFlags) -> Exit:
    """Go on with a fleet: with the runs that were begun, and new ones on other hosts."""
    from webdyno.cluster.replicates import finished_runs

    head = _head_of(folder / FLEET_FILE)
    finished = finished_runs(folder)
    missing = head.replicates - len(finished)
    if missing <= 0:
        return _shown(finished, folder, report=run.report)
    with _fleet_on(run.cluster, folder, {path.name for path in finished}, missing) as fleet:
        return _measure(fleet, head, missing, run)


def _head_of(file: Path) -> FleetHead:
    try:
        return FleetHead.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise Mistake(f"{file}: not the head of a fleet: {first_fault(error)}") from error


@contextmanager
def _fleet_on(
    cluster: str | None, folder: Path, without: Collection[str], wanted: int
) -> Iterator["Fleet"]:
    """Give a fleet of hosts that can measure, those first that had begun already."""
    from webdyno.cluster.agent import parcel_of
    from webdyno.cluster.replicates import Fleet

    def begun(host: str) -> Path | None:
        return folder / host if (folder / host / HEAD_FILE).exists() else None

    with cluster_hosts(cluster) as hosts:
        fit = [host for host in fit_hosts(hosts) if host.name not in without]
        if len(fit) < wanted:
            raise Mistake(f"{wanted} are wanted, and {count(len(fit), 'host')} can measure")
        fit.sort(key=lambda host: begun(host.name) is None)
        yield Fleet(fit, lambda host: parcel_of(folder, begun(host)), folder)


def _measure(fleet: "Fleet", head: FleetHead, wanted: int, run: RunFlags) -> Exit:
    from webdyno.cluster.replicates import finished_runs

    if not run.telling.quiet:
        tell(f"{head.name} on {wanted} of {count(len(fleet.hosts), 'host')}; each measures all")
    try:
        fleet.measure(wanted, BlockNews(wanted, quiet=run.telling.quiet), yes=run.yes)
    except KeyboardInterrupt:
        tell("\ninterrupted")
        return Exit.INTERRUPTED
    finally:
        _tell_of_failures(fleet.done)
        finished = finished_runs(fleet.out)
        if len(finished) < head.replicates:
            tell(
                f"what was measured is kept in {fleet.out}\n"
                f"    {command('resume', fleet.out)}   goes on, with everything as it was"
            )
    return _shown(finished, fleet.out, report=run.report)


@contextmanager
def cluster_hosts(address: str | None) -> Iterator[Sequence["Host"]]:
    """Join the cluster that is meant; give its hosts."""
    if find_spec("ray") is None:
        raise Trouble(
            "several hosts take Ray, an extra of webdyno: install 'webdyno[cluster]', or in a "
            f"checkout run .dyno/uv/bin/uv pip install --python {sys.executable} ray"
        )
    from webdyno.cluster.ray_hosts import ray_cluster

    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        raise Mistake("which cluster? Give its head with --cluster, such as 10.0.0.1:6379")
    with ray_cluster(address) as hosts:
        yield hosts


def fit_hosts(hosts: Sequence["Host"]) -> list["Host"]:
    """Leave out hosts that can't measure beside the others, and say why."""
    from webdyno.cluster.check import looked_at

    looked = looked_at(hosts)
    for it in looked:
        if it.why_not:
            tell(f"{it.why_not}; it is left out")
    return [it.host for it in looked if not it.why_not]


class BlockNews:
    """Tells of each block when it is there, and now and then how sure the answer is by now.

    That takes all of a host's records, so it is told after 2, 4, 8, … blocks: what it costs stays
    in proportion to them. Of many hosts only how far they are is told, after as many blocks as
    there are hosts.
    """

    def __init__(self, hosts: int, *, quiet: bool) -> None:
        self._hosts = hosts
        self._quiet = quiet
        self._read_bytes: dict[str, int] = {}
        self._blocks: dict[str, int] = {}
        self._all_blocks = 0
        self._counting = Lock()

    def __call__(self, host: str, run: Path) -> None:
        """Tell of what is new in a host's run."""
        before = self._blocks.get(host, 0)
        blocks = before + self._new_blocks(host, run)
        if blocks == before or self._quiet:
            return
        if self._hosts <= TOLD_APART:
            self._blocks[host] = blocks
            self._tell_of(host, run, before, blocks)
        else:
            self._count(host, blocks)

    def _tell_of(self, host: str, run: Path, before: int, blocks: int) -> None:
        told = ""
        if blocks.bit_length() > max(before, 1).bit_length():
            folder = RunFolder.open(run)
            told = f": {so_far_words(folder.head.experiment, folder.records())}"
        tell(f"{host}, block {blocks}{told}")

    def _count(self, host: str, blocks: int) -> None:
        with self._counting:
            before = self._all_blocks
            self._all_blocks += blocks - self._blocks.get(host, 0)
            self._blocks[host] = blocks
            if self._all_blocks // self._hosts > before // self._hosts:
                least, most = min(self._blocks.values()), max(self._blocks.values())
                spread = f"{least} to {most}" if least < most else f"{least}"
                hosts = count(len(self._blocks), "host")
                tell(f"{count(self._all_blocks, 'block')} on {hosts}, {spread} on each")

    def _new_blocks(self, host: str, run: Path) -> int:
        with (run / RECORDS_FILE).open("rb") as file:
            file.seek(self._read_bytes.get(host, 0))
            whole, _, _ = file.read().rpartition(b"\n")
            self._read_bytes[host] = self._read_bytes.get(host, 0) + len(whole)
        return sum(line.startswith(BLOCK) for line in whole.split(b"\n"))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Mistake(f"{folder} is not empty: name another one with --out")
    except OSError as error:
        raise Trouble(f"{folder}: can't be made: {error.strerror}") from error


def _tell_of_failures(done: Sequence["Replicated"]) -> None:
    failed = [it for it in done if it.lost is not None or it.came_to_nothing]
    for it in failed[:TOLD_APART]:
        if it.ended is None:
            tell(f"{it.lost}; what it had measured is kept in {it.folder}")
        else:
            tell(f"{it.host} measured nothing to its end (exit code {it.ended.code}):")
            tell(f"    {it.ended.said.strip()}")
    if len(failed) > TOLD_APART:
        tell(f"… and {count(len(failed) - TOLD_APART, 'more host')} came to nothing or were lost")


def _shown(runs: Sequence[Path], folder: Path, *, report: bool) -> Exit:
    """Judge the runs that came to their end together, and write the pages."""
    if len(runs) < 2:
        raise Trouble(f"{count(len(runs), 'host')} came to an end, which says nothing of others")
    if report and len(runs) <= TOLD_APART:
        _write_reports(runs)
    page = folder / PAGE_FILE if report else None
    named = {path.name: path for path in runs}
    return show_fleet(named, page, command("fleet", folder, "--page", folder / PAGE_FILE))


def _write_reports(runs: Iterable[Path]) -> None:
    from webdyno.cli.result import see
    from webdyno.report.page import write_report

    for run in runs:
        write_report(run, see(RunFolder.open(run)).view)
