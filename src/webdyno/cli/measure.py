"""What `run`, `duel`, `resume` and `studies` have in common: measure, then show the result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.cli.agreement import agree_to_foreign, provide_packages, refuse_other_machines
from webdyno.cli.console import tell
from webdyno.cli.exits import Exit
from webdyno.cli.first_look import without_unlike
from webdyno.cli.flags import RunFlags, Telling
from webdyno.cli.lasting_state import state_that_stays
from webdyno.cli.progress import RunProgress
from webdyno.cli.result import show_result
from webdyno.definitions import Catalogue
from webdyno.definitions.compatibility import PROTOCOL
from webdyno.definitions.foreign import commands_around_blocks, foreign_parts
from webdyno.generator.interface import program
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.limits import Limit, read_limit
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import plan_points
from webdyno.model.records import SlotRecord
from webdyno.model.service import Need
from webdyno.run.folder import RunFolder

if TYPE_CHECKING:
    from webdyno.run.backend import Backend

Blocks = Mapping[int, int]
"""By number of a point: how many blocks it is to have in all; none at points left out."""

Show = Callable[[RunFolder], Exit]
"""Shows what was measured, and gives the exit code that fits."""

Afterwards = Callable[[Path], Exit]
"""What is asked of a run that came to its end, by its folder; what the run came to is told by then,
and its exit code stays unless this one is interrupted."""


def measure(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    run: RunFlags,
    blocks: Blocks | None = None,
    *,
    fail_on: Sequence[str] = (),
    show: Show | None = None,
    afterwards: Afterwards | None = None,
) -> Exit:
    """Run an experiment from its first block on, in the folder `out` or one under runs/."""
    limits = _limits(fail_on, experiment)
    _provide(experiment, catalogue, out or Path("the new run"), run)
    experiment = without_unlike(experiment, catalogue, yes=run.yes)
    if said := state_that_stays(experiment, catalogue):
        tell(said)
    from webdyno.run.budget import estimate_text
    from webdyno.run.session import begin_run

    if not run.telling.quiet:
        tell(f"{name} {estimate_text(experiment, catalogue)}" if blocks is None else name)
    return _measure_in(
        _backend(experiment, run),
        lambda backend, there: begin_run(name, there, catalogue, out, backend),
        run.telling,
        blocks=blocks,
        show=show or partial(show_result, fail_on=limits, report=run.report),
        afterwards=afterwards,
    )


def measure_on(
    path: Path,
    run: RunFlags,
    more_s: float | None = None,
    blocks: Blocks | None = None,
    *,
    show: Show | None = None,
    afterwards: Afterwards | None = None,
) -> Exit:
    """Go on with a run where it was interrupted, or for so many seconds from now on.

    With `blocks` it goes on until its points have so many.
    """
    from webdyno.run.repeat import kept_catalogue
    from webdyno.run.session import resume_run

    experiment = RunFolder.open(path).head.experiment
    _provide(experiment, kept_catalogue(path), path, run)
    shown = show or partial(show_result, report=run.report)
    return _measure_in(
        _backend(experiment, run),
        lambda backend, _: resume_run(path, backend),
        run.telling,
        more_s,
        blocks,
        show=shown,
        afterwards=afterwards,
    )


@contextmanager
def _backend(experiment: Experiment, run: RunFlags) -> Iterator[tuple["Backend", Experiment]]:
    """Give where an experiment takes place, and the experiment with its hosts named."""
    from webdyno.run.session import LOCAL

    if experiment.bench.kind != "cluster":
        yield LOCAL, experiment
        return
    from webdyno.cli.hosts import cluster_hosts, fit_hosts
    from webdyno.cluster.backend import ClusterBackend

    with (
        cluster_hosts(run.cluster) as hosts,
        ClusterBackend(fit_hosts(hosts), yes=run.yes) as backend,
    ):
        yield backend, backend.resolved(experiment)


def _provide(experiment: Experiment, catalogue: Catalogue, folder: Path, run: RunFlags) -> None:
    """Get a yes to what runs at any of the points, and what it needs on the machine.

    `folder` is that of the run.
    """
    there = [plan.experiment for plan in plan_points(experiment)]
    arms = [(arm, each.site_of(name)) for each in there for name, arm in each.arms.items()]
    stacks = [catalogue.stack(name) for name in dict.fromkeys(arm.stack for arm, _ in arms)]
    sites = [catalogue.site(name) for name in dict.fromkeys(site for _, site in arms)]
    generators = dict.fromkeys(each.generator for each in there)
    tools = [need for name in generators if (need := program(name).need)]
    tools += [need for each in there for need in _needs_of_protocols(each, catalogue)]
    on_hosts = experiment.bench.kind == "cluster"
    refuse_other_machines(stacks, loaded=run.loads_other_machines, anywhere=on_hosts)
    around = commands_around_blocks((each.state for each in there), folder)
    agree_to_foreign([*foreign_parts(stacks, sites), *around], yes=run.yes)
    if on_hosts:  # they look themselves
        return
    provide_packages(stacks, sites, tools, yes=run.yes)
    _tell_of_others()


def _needs_of_protocols(experiment: Experiment, catalogue: Catalogue) -> Iterator[Need]:
    """Give what servers need because of the protocol that they are asked in."""
    for name, arm in experiment.arms.items():
        stack, spoken = catalogue.stack(arm.stack), experiment.load_of(name).protocol
        for need in stack.services[stack.front].service.needs.values():
            if need.when.get(PROTOCOL) == spoken:
                yield need


def _tell_of_others() -> None:
    """Say who else is at it here: two runs on one machine measure each other."""
    from webdyno.host.workspace import others_running, sweep

    for fault in sweep():
        tell(fault)
    for other in others_running():
        tell(
            f"process {other.pid} runs servers of webdyno as well ({other.command}); the two "
            "disturb each other: better wait until that has ended"
        )


def _limits(texts: Sequence[str], experiment: Experiment) -> list[Limit]:
    limits = []
    for text in texts:
        try:
            limits.append(read_limit(text, experiment))
        except ValueError as error:
            raise Mistake(f"--fail-on '{text}': {error}") from None
    return limits


def _measure_in(
    where: AbstractContextManager[tuple["Backend", Experiment]],
    opened: Callable[["Backend", Experiment], RunFolder],
    telling: Telling,
    more_s: float | None = None,
    blocks: Blocks | None = None,
    *,
    show: Show,
    afterwards: Afterwards | None = None,
) -> Exit:
    """Measure in a run's folder that is held for writing; whatever happens, say how to go on."""
    from webdyno.run.session import is_finished, measure_run, rounds_are_over

    is_over = is_finished if blocks is None else rounds_are_over

    with where as (backend, there), opened(backend, there) as folder:
        if more_s is None and blocks is None and is_finished(folder.data()):
            longer = command("resume", folder.path, "--budget", "60s")
            tell(f"this run has come to its end; to measure for longer: {longer}")
        try:
            with RunProgress(folder.head, telling) as progress:
                measure_run(folder, progress, more_s, blocks, backend)
        except KeyboardInterrupt:
            if _has_enough(folder):
                show(folder)
            tell(f"\ninterrupted; {_what_is_kept(folder)}")
            return Exit.INTERRUPTED
        except Trouble as trouble:
            raise Trouble(f"{trouble}\n{_what_is_kept(folder)}") from trouble
        code = show(folder)
        if not is_over(folder.data()):
            tell(f"a server died; {_what_is_kept(folder)}")
            return code
    if afterwards is not None and (end := afterwards(folder.path)) is Exit.INTERRUPTED:
        return end
    return code


def _has_enough(folder: RunFolder) -> bool:
    """Whether an interrupted run has blocks enough for an answer."""
    from webdyno.judge import question_of

    points = folder.data().points
    return all(question_of(data.experiment).shows_when_interrupted(data) for data in points)


def _what_is_kept(folder: RunFolder) -> str:
    """Say where the slots of a run are that didn't come to its end, and what can be done."""
    if not any(isinstance(record, SlotRecord) for record in folder.records()):
        return f"nothing was measured yet, and {folder.path} can be removed"
    return (
        f"every finished slot is kept in {folder.path}\n"
        f"    {command('resume', folder.path)}   goes on, with everything as it was\n"
        f"    {command('report', folder.path)}   judges what is there"
    )
