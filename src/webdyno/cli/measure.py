"""What `run`, `duel` and `resume` have in common: measure with progress, then show the result."""

from pathlib import Path

from webdyno.cli.exits import Exit
from webdyno.cli.packages import provide_packages
from webdyno.cli.progress import RunProgress
from webdyno.cli.result import show_result, tell_where
from webdyno.definitions import Catalogue
from webdyno.generator import program
from webdyno.model.experiment import Experiment
from webdyno.model.point import plan_points
from webdyno.run.folder import RunFolder


def measure(
    name: str, experiment: Experiment, catalogue: Catalogue, out: Path | None, *, yes: bool
) -> Exit:
    """Run an experiment from its first block on, in the folder `out` or one under runs/."""
    _provide(experiment, catalogue, yes=yes)
    from webdyno.run.session import begin_run

    with begin_run(name, experiment, catalogue, out) as folder:
        return _carry_on(folder, catalogue)


def measure_on(folder: RunFolder, catalogue: Catalogue, *, yes: bool) -> Exit:
    """Go on with a run where it was interrupted."""
    _provide(folder.head.experiment, catalogue, yes=yes)
    with folder:
        folder.hold()
        return _carry_on(folder, catalogue)


def _provide(experiment: Experiment, catalogue: Catalogue, *, yes: bool) -> None:
    arms = experiment.arms.values()
    stacks = [catalogue.stack(arm.stack) for arm in arms]
    sites = [catalogue.site(arm.site or experiment.site) for arm in arms]
    generators = dict.fromkeys(plan.experiment.generator for plan in plan_points(experiment))
    tools = [need for name in generators if (need := program(name).need)]
    provide_packages(stacks, sites, tools, yes=yes)


def _carry_on(folder: RunFolder, catalogue: Catalogue) -> Exit:
    from webdyno.run.session import carry_on

    try:
        with RunProgress(folder.head) as progress:
            carry_on(folder, catalogue, progress)
    except KeyboardInterrupt:
        tell_where(folder)
        return Exit.INTERRUPTED
    return show_result(folder)
