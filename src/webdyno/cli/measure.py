"""What `run`, `duel` and `resume` have in common: measure with progress, then show the result."""

from pathlib import Path

from rich.console import Console

from webdyno.cli.agreement import agree_to_catalogues, provide_packages
from webdyno.cli.exits import Exit
from webdyno.cli.progress import RunProgress
from webdyno.cli.result import show_result, tell_where
from webdyno.definitions import Catalogue
from webdyno.generator import check_generator, generator_needs
from webdyno.model.experiment import Experiment
from webdyno.model.point import plan_points
from webdyno.run.folder import RunFolder


def measure(
    name: str, experiment: Experiment, catalogue: Catalogue, out: Path | None, *, yes: bool
) -> Exit:
    """Run an experiment from its first block on, in the folder `out` or one under runs/."""
    for plan in plan_points(experiment):
        check_generator(plan.experiment)
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
    tools = [need for name in generators for need in generator_needs(name)]
    agree_to_catalogues(stacks, sites, yes=yes)
    provide_packages(stacks, sites, tools, yes=yes)
    _tell_of_others()


def _tell_of_others() -> None:
    """Say who else is at it here: two runs on one machine measure each other."""
    from webdyno.bench import others_running

    for other in others_running():
        text = (
            f"process {other.pid} has servers of webdyno up as well ({other.command}); the two "
            "disturb each other: better wait until that has ended"
        )
        Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


def _carry_on(folder: RunFolder, catalogue: Catalogue) -> Exit:
    from webdyno.run.session import carry_on

    try:
        with RunProgress(folder.head) as progress:
            carry_on(folder, catalogue, progress)
    except KeyboardInterrupt:
        tell_where(folder)
        return Exit.INTERRUPTED
    return show_result(folder)
