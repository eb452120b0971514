"""`webdyno run … --spread`: the points of an experiment dealt to the hosts of a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.cli.console import plain_console, tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import NewRunFlags, RunFlags
from webdyno.cli.hosts import (
    BlockNews,
    begin_folder,
    cluster_hosts,
    fit_hosts,
    read_head,
    tell_of_failures,
    write_reports,
)
from webdyno.definitions import Catalogue, read_experiment
from webdyno.definitions.toml_file import TomlFile
from webdyno.model.cluster import SPREAD_FILE, SpreadHead
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.format import count
from webdyno.model.judgement import Verdict
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import Point, only_at, plan_points
from webdyno.model.run import EXPERIMENT_FILE

if TYPE_CHECKING:
    from webdyno.cluster.host import Host


def measure_spread(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    new: NewRunFlags,
) -> Exit:
    """Measure each point of an experiment on one host, and show them together."""
    from webdyno.run.session import folder_under_runs

    if new.fail_on:
        raise Mistake("--fail-on asks a single run: leave it out, or --spread")
    if experiment.gate is not None:
        raise Mistake("a gate has one answer for all of its points: leave --spread out")
    if experiment.bench.kind == "cluster":
        raise Mistake("--bench cluster has hosts for one point: leave it out, or --spread")
    if len(plan_points(experiment)) < 2:
        raise Mistake("--spread takes an experiment of several points: --vary KEY=LEVEL,LEVEL…")
    folder = out or folder_under_runs(name, datetime.now().astimezone())
    with _able_hosts(new.how.cluster) as hosts:
        head = SpreadHead(name=name)
        begin_folder(folder / SPREAD_FILE, head, experiment, catalogue)
        points = [plan.point for plan in plan_points(experiment)]
        return _measure(head, folder, experiment, points, hosts, new.how)


def measure_missing(folder: Path, run: RunFlags) -> Exit:
    """Measure the points that no host has measured to its end; show all of them."""
    from webdyno.cluster.spread import finished_points

    head, experiment = read_head(SpreadHead, folder / SPREAD_FILE), _experiment_of(folder)
    points = [plan.point for plan in plan_points(experiment)]
    finished = finished_points(folder, points)
    missing = [point for point in points if point.number not in finished]
    if not missing:
        return show_spread(folder)
    with _able_hosts(run.cluster) as hosts:
        return _measure(head, folder, experiment, missing, hosts, run)


@contextmanager
def _able_hosts(cluster: str | None) -> Iterator[list["Host"]]:
    with cluster_hosts(cluster) as hosts:
        fit = fit_hosts(hosts)
        if not fit:
            raise Trouble("none of the hosts can measure")
        yield fit


def _measure(
    head: SpreadHead,
    folder: Path,
    experiment: Experiment,
    points: Sequence[Point],
    hosts: Sequence["Host"],
    run: RunFlags,
) -> Exit:
    """Measure these points; whatever happens, say what is missing and how to go on."""
    from webdyno.cluster.agent import parcel_of
    from webdyno.cluster.spread import Spread

    def parcel(point: Point, begun: Path | None) -> bytes:
        return parcel_of(folder, begun, only_at(experiment, point))

    spread = Spread(hosts, parcel, folder)
    if not run.telling.quiet:
        there = f"{count(len(points), 'point')} on {count(len(hosts), 'host')}"
        tell(f"{head.name}: {there}, each point on one of them")
    try:
        spread.measure(points, BlockNews(1, quiet=run.telling.quiet), yes=run.yes)
    except KeyboardInterrupt:
        tell("\ninterrupted")
        return Exit.INTERRUPTED
    finally:
        tell_of_failures(spread.done)
        finished = [it for it in spread.done if it.measured]
        if len(finished) < len(points):
            tell(
                f"{len(finished)} of {count(len(points), 'point')} came to an end; what was "
                f"measured is kept in {folder}\n    {command('resume', folder)}   goes on"
            )
    if run.report:
        write_reports(it.folder for it in finished)
    return show_spread(folder)


def show_spread(folder: Path) -> Exit:
    """Judge each point that came to its end, and print it with its machine."""
    from webdyno.cli.result import see
    from webdyno.cluster.spread import finished_points
    from webdyno.report.spread import MachinePoint, print_spread

    experiment = _experiment_of(folder)
    points = [plan.point for plan in plan_points(experiment)]
    judged = []
    for number, run in finished_points(folder, points).items():
        [alone] = see(run).judged.points
        at = alone.model_copy(update={"point": points[number]})
        judged.append(MachinePoint(run.path.parent.name, run.path.relative_to(folder), at))
    if not judged:
        raise Trouble(f"{folder}: no point was measured to its end")
    print_spread(plain_console(), experiment, judged, len(points))
    if len(judged) < len(points):
        return Exit.FAILED
    verdicts = {it.at.judgement.verdict for it in judged}
    return Exit.INVALID if Verdict.INVALID in verdicts else Exit.OK


def _experiment_of(folder: Path) -> Experiment:
    from webdyno.run.repeat import kept_catalogue

    return read_experiment(TomlFile(folder / EXPERIMENT_FILE), [], kept_catalogue(folder))
