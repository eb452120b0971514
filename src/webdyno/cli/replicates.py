"""`webdyno run … --replicates N`: the whole experiment on several hosts of a cluster."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.cli.console import tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import RunFlags
from webdyno.cli.fleet import show_fleet
from webdyno.cli.progress import so_far_words
from webdyno.definitions import Catalogue
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.format import count
from webdyno.model.mistake import Mistake, Trouble
from webdyno.run.folder import RunFolder

if TYPE_CHECKING:  # Ray is an extra, and takes a second to import
    from webdyno.cluster.host import Host
    from webdyno.cluster.replicates import Replicated

PAGE_FILE = "fleet.html"


def replicate(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    run: RunFlags,
    *,
    replicates: int,
    cluster: str | None,
) -> Exit:
    """Run an experiment on several hosts at once, and say how far the verdict carries."""
    from webdyno.cluster.agent import parcel_of
    from webdyno.cluster.replicates import Fleet
    from webdyno.run.session import RUNS_FOLDER

    if run.fail_on:
        raise Mistake("--fail-on asks a single run: leave it out, or --replicates")
    folder = out or RUNS_FOLDER / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{name}"
    _make(folder)
    with cluster_hosts(cluster) as hosts:
        fit = _fit(hosts)
        if len(fit) < replicates:
            raise Mistake(f"--replicates {replicates}: {count(len(fit), 'host')} can measure")
        tell(f"{name} on {replicates} of {count(len(fit), 'host')}; each measures all of it")
        parcel, news = parcel_of(experiment, catalogue), _News(quiet=run.telling.quiet)
        fleet = Fleet(fit, parcel, folder, yes=run.yes, news=news)
        try:
            fleet.measure(replicates)
        except KeyboardInterrupt:
            tell(f"\ninterrupted; what was measured is kept in {folder}")
            return Exit.INTERRUPTED
        finally:
            _tell_of_failures(fleet.done)
    return _shown([it.folder for it in fleet.done if it.is_whole], folder, report=run.report)


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


def _fit(hosts: Sequence["Host"]) -> list["Host"]:
    """Leave out hosts that can't measure beside the others, and say why."""
    from webdyno.cluster.check import looked_at

    looked = looked_at(hosts)
    for it in looked:
        if it.why_not:
            tell(f"{it.why_not}; it is left out")
    return [it.host for it in looked if not it.why_not]


class _News:
    """Tells of each block when it is there."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._blocks: dict[str, int] = {}

    def __call__(self, host: str, folder: RunFolder) -> None:
        """Tell of the newest block of a host's run, once."""
        records = folder.records()
        blocks = sum(record.kind == "block" for record in records)
        if blocks > self._blocks.get(host, 0) and not self._quiet:
            tell(f"{host}, block {blocks}: {so_far_words(folder.head.experiment, records)}")
        self._blocks[host] = blocks


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Mistake(f"{folder} is not empty: name another one with --out")
    except OSError as error:
        raise Trouble(f"{folder}: can't be made: {error.strerror}") from error


def _tell_of_failures(done: Sequence["Replicated"]) -> None:
    for it in done:
        if it.lost is not None:
            tell(f"{it.lost}; what it had measured is kept in {it.folder}")
        elif it.ended is not None and not it.is_whole:
            tell(f"{it.host} measured nothing to its end (exit code {it.ended.code}):")
            tell(f"    {it.ended.said.strip()}")


def _shown(runs: Sequence[Path], folder: Path, *, report: bool) -> Exit:
    """Judge the runs that came to their end together, and write the pages."""
    if len(runs) < 2:
        raise Trouble(f"{count(len(runs), 'host')} came to an end, which says nothing of others")
    opened = {path.name: RunFolder.open(path) for path in runs}
    if report:
        _write_reports(opened)
    page = folder / PAGE_FILE if report else None
    return show_fleet(opened, page, command("fleet", *runs, "--page", folder / PAGE_FILE))


def _write_reports(runs: Mapping[str, RunFolder]) -> None:
    from webdyno.cli.result import see
    from webdyno.report.page import write_report

    for run in runs.values():
        write_report(run.path, see(run).view)
