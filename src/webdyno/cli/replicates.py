"""`webdyno run … --replicates N`: the whole experiment on several hosts of a cluster."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.cli.console import tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import NewRunFlags, RunFlags
from webdyno.cli.fleet import show_fleet
from webdyno.cli.hosts import (
    TOLD_APART,
    BlockNews,
    begin_folder,
    cluster_hosts,
    fit_hosts,
    read_head,
    tell_of_failures,
    write_reports,
)
from webdyno.definitions import Catalogue
from webdyno.model.cluster import FLEET_FILE, FleetHead
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.format import count
from webdyno.model.mistake import Mistake, Trouble
from webdyno.run.folder import HEAD_FILE

if TYPE_CHECKING:
    from webdyno.cluster.replicates import Fleet

PAGE_FILE = "fleet.html"


def replicate(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    new: NewRunFlags,
    *,
    replicates: int,
) -> Exit:
    """Run an experiment on several hosts at once, and say how far the verdict carries."""
    from webdyno.run.session import folder_under_runs

    if new.fail_on:
        raise Mistake("--fail-on asks a single run: leave it out, or --replicates")
    if replicates < 2:
        raise Mistake(f"--replicates {replicates}: two hosts or more say something of others")
    folder = out or folder_under_runs(name, datetime.now().astimezone())
    with _fleet_on(new.how.cluster, folder, set(), replicates) as fleet:
        head = FleetHead(name=name, replicates=replicates)
        begin_folder(folder / FLEET_FILE, head, experiment, catalogue)
        return _measure(fleet, head, replicates, new.how)


def go_on(folder: Path, run: RunFlags) -> Exit:
    """Go on with a fleet: with the runs that were begun, and new ones on other hosts."""
    from webdyno.cluster.replicates import finished_runs

    head = read_head(FleetHead, folder / FLEET_FILE)
    finished = finished_runs(folder)
    missing = head.replicates - len(finished)
    if missing <= 0:
        return _shown(finished, folder, report=run.report)
    with _fleet_on(run.cluster, folder, {path.name for path in finished}, missing) as fleet:
        return _measure(fleet, head, missing, run)


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
        tell_of_failures(fleet.done)
        finished = finished_runs(fleet.out)
        if len(finished) < head.replicates:
            tell(
                f"what was measured is kept in {fleet.out}\n"
                f"    {command('resume', fleet.out)}   goes on, with everything as it was"
            )
    return _shown(finished, fleet.out, report=run.report)


def _shown(runs: Sequence[Path], folder: Path, *, report: bool) -> Exit:
    """Judge the runs that came to their end together, and write the pages."""
    if len(runs) < 2:
        raise Trouble(f"{count(len(runs), 'host')} came to an end, which says nothing of others")
    if report and len(runs) <= TOLD_APART:
        write_reports(runs)
    page = folder / PAGE_FILE if report else None
    named = {path.name: path for path in runs}
    return show_fleet(named, page, command("fleet", folder, "--page", folder / PAGE_FILE))
