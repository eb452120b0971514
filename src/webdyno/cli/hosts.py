"""What commands that measure on several hosts have in common."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from webdyno.cli.agreement import refuse_other_machines
from webdyno.cli.console import tell
from webdyno.definitions import Catalogue
from webdyno.definitions.validation import first_fault
from webdyno.model.experiment import Experiment
from webdyno.model.files import cause_of, read_given, reading, write_whole
from webdyno.model.format import count
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import plan_points
from webdyno.run.folder import MOST_HEAD_BYTES, RunFolder
from webdyno.run.records_file import RECORDS_FILE

if TYPE_CHECKING:  # Ray is an extra, and takes a second to import
    from webdyno.cluster.dispatch import HostRun
    from webdyno.cluster.host import Host

Head = TypeVar("Head", bound=BaseModel)

TOLD_APART = 20
"""Of so many hosts each is told of by itself, and gets a report of its own."""
BLOCK = b'{"kind":"block"'
"""How the record of a finished block begins; see `run.redact.line_of`."""


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
    from webdyno.cluster.host import checked_hosts

    looked = checked_hosts(hosts)
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
        from webdyno.judge import question_of

        told = ""
        if blocks.bit_length() > max(before, 1).bit_length():
            points = RunFolder.open(run).data().points
            told = f": {'; '.join(question_of(it.experiment).so_far(it) for it in points)}"
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


def begin_folder(file: Path, head: BaseModel, experiment: Experiment, catalogue: Catalogue) -> None:
    """Make the folder of a head for the runs of several hosts, with all that starts them again.

    Raises Mistake where there is something in it, and for what would have all of them load another
    machine.
    """
    from webdyno.run.repeat import keep_for_repeating

    arms = (arm for point in plan_points(experiment) for arm in point.experiment.arms.values())
    stacks = [catalogue.stack(name) for name in dict.fromkeys(arm.stack for arm in arms)]
    refuse_other_machines(stacks, loaded=False, anywhere=True)
    folder = file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Mistake(f"{folder} is not empty: name another one with --out")
    except OSError as error:
        raise Trouble(f"{folder}: can't be made: {cause_of(error)}") from error
    keep_for_repeating(folder, experiment, catalogue)
    write_whole(file, head.model_dump_json(indent=2) + "\n")


def read_head(kind: type[Head], file: Path) -> Head:
    """Read what `begin_folder` has written. Raises Mistake where somebody else has."""
    with reading(file):
        text = read_given(file, MOST_HEAD_BYTES)
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        what = kind.__name__.removesuffix("Head").lower()
        raise Mistake(f"{file}: not the head of a {what}: {first_fault(error)}") from error


def tell_of_failures(runs: Sequence["HostRun"]) -> None:
    """Tell which hosts were lost, and which couldn't measure: of many points the last one's why."""
    failed: dict[str, list[HostRun]] = defaultdict(list)
    for it in runs:
        if it.lost is not None or it.came_to_nothing:
            failed[it.host].append(it)
    for several in list(failed.values())[:TOLD_APART]:
        last, labels = several[-1], "; ".join(it.label for it in several)
        if last.ended is None:
            tell(f"{last.lost}; what it had measured is kept in {last.folder}")
        else:
            tell(f"{labels}: measured nothing to its end (exit code {last.ended.code}):")
            tell(f"    {last.ended.said.strip()}")
    if len(failed) > TOLD_APART:
        tell(f"… and {count(len(failed) - TOLD_APART, 'more host')} came to nothing or were lost")


def write_reports(runs: Iterable[Path]) -> None:
    """Draw the reports of finished runs."""
    from webdyno.report.result_page import write_report
    from webdyno.report.view import see

    for run in runs:
        write_report(run, see(RunFolder.open(run).data()).view)
