"""Experiments that several hosts of a cluster measure, each a run of its own.

`webdyno run … --replicates N` measures the whole experiment on N hosts, `--spread` each point of it
on one; `webdyno resume` goes on with either.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webdyno.cli.console import plain_console, tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import NewRunFlags, RunFlags
from webdyno.cli.fleet import FLEET_PAGE, show_fleet
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
from webdyno.definitions import Catalogue, read_experiment
from webdyno.definitions.toml_file import TomlFile
from webdyno.model.cluster import FLEET_FILE, SPREAD_FILE, FleetHead, SpreadHead
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.format import count
from webdyno.model.judgement import Verdict
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import plan_points
from webdyno.model.run import EXPERIMENT_FILE, PAGE_FILE

if TYPE_CHECKING:
    from webdyno.cluster.dispatch import Dispatcher, Work


class Dispatched(NamedTuple):
    """An experiment that several hosts measure, in a folder of its own."""

    folder: Path
    name: str
    each: str
    """What each run is about."""
    works: "Sequence[Work]"
    show: Callable[[], Exit]
    """Judges the runs that came to their end together, and shows that."""


def run_replicates(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    new: NewRunFlags,
    *,
    replicates: int,
) -> Exit:
    """Run an experiment on several hosts at once, and say how far the verdict carries."""
    _refuse_fail_on(new, "--replicates")
    if replicates < 2:
        raise Mistake(f"--replicates {replicates}: two hosts or more say something of others")
    folder, head = _folder(name, out), FleetHead(name=name, replicates=replicates)
    begin = partial(begin_folder, folder / FLEET_FILE, head, experiment, catalogue)
    return _measure(_replicates(folder, head, new.how), new.how, begin)


def run_spread(
    name: str, experiment: Experiment, catalogue: Catalogue, out: Path | None, new: NewRunFlags
) -> Exit:
    """Measure each point of an experiment on one host, and show them together."""
    from webdyno.judge import question_of

    _refuse_fail_on(new, "--spread")
    if question_of(experiment).one_answer:
        raise Mistake("a gate has one answer for all of its points: leave --spread out")
    if experiment.bench.kind == "cluster":
        raise Mistake("--bench cluster has hosts for one point: leave it out, or --spread")
    if len(plan_points(experiment)) < 2:
        raise Mistake("--spread takes an experiment of several points: --vary KEY=LEVEL,LEVEL…")
    folder, head = _folder(name, out), SpreadHead(name=name)
    begin = partial(begin_folder, folder / SPREAD_FILE, head, experiment, catalogue)
    return _measure(_spread(folder, head, experiment), new.how, begin)


def go_on(folder: Path, run: RunFlags) -> Exit:
    """Measure what no host has measured to its end, on those first that had begun it; show all."""
    if (folder / FLEET_FILE).exists():
        dispatched = _replicates(folder, read_head(FleetHead, folder / FLEET_FILE), run)
    else:
        head = read_head(SpreadHead, folder / SPREAD_FILE)
        dispatched = _spread(folder, head, _experiment_of(folder))
    return _measure(dispatched, run, lambda: None)


def _refuse_fail_on(new: NewRunFlags, flag: str) -> None:
    if new.fail_on:
        raise Mistake(f"--fail-on asks a single run: leave it out, or {flag}")


def _folder(name: str, out: Path | None) -> Path:
    from webdyno.run.session import folder_under_runs

    return out or folder_under_runs(name, datetime.now().astimezone())


def _replicates(folder: Path, head: FleetHead, run: RunFlags) -> Dispatched:
    from webdyno.cluster.dispatch import Work

    works = [Work(hosts=head.replicates)]
    show = partial(_show_replicates, folder, page=run.report)
    return Dispatched(folder, head.name, "all of the experiment", works, show)


def _spread(folder: Path, head: SpreadHead, experiment: Experiment) -> Dispatched:
    from webdyno.cluster.dispatch import work_at_points

    works = work_at_points(experiment)
    return Dispatched(folder, head.name, "one point", works, partial(show_spread, folder))


def _measure(dispatched: Dispatched, run: RunFlags, begin: Callable[[], None]) -> Exit:
    """Have hosts measure what is missing, and show all; `begin` makes a new folder."""
    from webdyno.cluster.agent import parcel_of
    from webdyno.cluster.dispatch import Dispatcher, finished_runs, missing_runs

    folder, works = dispatched.folder, dispatched.works
    missing = missing_runs(works, folder)
    if not missing:
        return dispatched.show()
    with cluster_hosts(run.cluster) as hosts:
        dispatcher = Dispatcher(
            fit_hosts(hosts),
            lambda work, begun: parcel_of(folder, begun, work.experiment),
            folder,
        )
        _check_hosts(dispatcher, missing)
        begin()
        try:
            _dispatch(dispatcher, dispatched, missing, run)
        except KeyboardInterrupt:
            tell("\ninterrupted")
            return Exit.INTERRUPTED
        finally:
            tell_of_failures(dispatcher.done)
            _tell_of_missing(dispatched, missing_runs(works, folder))
    if run.report and max(work.hosts for work in works) <= TOLD_APART:
        runs = (it.path for work in works for it in finished_runs(folder, work.part))
        write_reports(path for path in runs if not (path / PAGE_FILE).exists())
    return dispatched.show()


def _check_hosts(dispatcher: "Dispatcher", missing: "Counter[Work]") -> None:
    if not dispatcher.hosts:
        raise Trouble("none of the hosts can measure")
    for work, wanted in missing.items():
        there = len(dispatcher.hosts_for(work))
        if there < wanted:
            raise Mistake(f"{wanted} are wanted, and {count(there, 'host')} can measure")


def _dispatch(
    dispatcher: "Dispatcher", dispatched: Dispatched, missing: "Counter[Work]", run: RunFlags
) -> None:
    quiet = run.telling.quiet
    if not quiet:
        hosts = count(len(dispatcher.hosts), "host")
        tell(
            f"{dispatched.name}: {count(missing.total(), 'run')} on {hosts}, "
            f"each of {dispatched.each}"
        )
    dispatcher.measure(missing, BlockNews(max(missing.values()), quiet=quiet), yes=run.yes)


def _tell_of_missing(dispatched: Dispatched, missing: "Counter[Work]") -> None:
    if missing:
        runs = sum(work.hosts for work in dispatched.works)
        tell(
            f"{runs - missing.total()} of {count(runs, 'run')} came to an end; what was measured "
            f"is kept in {dispatched.folder}\n    {command('resume', dispatched.folder)}   goes on"
        )


def _show_replicates(folder: Path, *, page: bool) -> Exit:
    """Judge the runs that came to their end together, and write the page of all of them."""
    from webdyno.cluster.dispatch import finished_runs

    runs = {run.path.name: run.path for run in finished_runs(folder)}
    if len(runs) < 2:
        raise Trouble(f"{count(len(runs), 'host')} came to an end, which says nothing of others")
    file = folder / FLEET_PAGE
    return show_fleet(runs, file if page else None, command("fleet", folder, "--page", file))


def show_spread(folder: Path) -> Exit:
    """Judge each point that came to its end, and print it with its machine."""
    from webdyno.cluster.dispatch import finished_runs, work_at_points
    from webdyno.judge.sweep import judge_sweep
    from webdyno.report.run_comparison import MachinePoint, spread_document
    from webdyno.report.terminal import print_document

    experiment = _experiment_of(folder)
    works, judged = work_at_points(experiment), []
    for work, plan in zip(works, plan_points(experiment), strict=True):
        for run in finished_runs(folder, work.part)[:1]:
            [alone] = judge_sweep(run.data()).points
            at = alone.replace(point=plan.point)
            judged.append(MachinePoint(run.path.parent.name, run.path.relative_to(folder), at))
    if not judged:
        raise Trouble(f"{folder}: no point was measured to its end")
    print_document(plain_console(), spread_document(experiment, judged, len(works)))
    if len(judged) < len(works):
        return Exit.FAILED
    verdicts = {it.at.judgement.verdict for it in judged}
    return Exit.INVALID if Verdict.INVALID in verdicts else Exit.OK


def _experiment_of(folder: Path) -> Experiment:
    from webdyno.run.repeat import kept_catalogue

    return read_experiment(TomlFile(folder / EXPERIMENT_FILE), [], kept_catalogue(folder))
