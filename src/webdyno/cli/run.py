"""`webdyno run`: an experiment from its file to a verdict and a report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.durations import parse_duration_s
from webdyno.cli.exits import Exit
from webdyno.cli.flags import Budget, CatalogDirs, ExperimentSettings, Out, Precision, Yes
from webdyno.cli.packages import provide_packages
from webdyno.cli.progress import RunProgress
from webdyno.cli.result import show_result, tell_where
from webdyno.definitions import Catalogue


def run(
    experiment: Annotated[
        str, Parameter(help="Name of an experiment in the catalogue, or a TOML file.")
    ] = "static-hello",
    *,
    budget: Budget = None,
    precision: Precision = None,
    set_: ExperimentSettings = (),
    out: Out = None,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> Exit:
    """Run an experiment: start its stacks, load them in turns, judge, and write a report.

    For example

        webdyno run

        webdyno run static-hello --budget 5m --precision 0.01

        webdyno run mine.toml --set load.connections=16 --set arms.nginx.knobs.workers=1
    """
    catalogue = Catalogue.load(catalog)
    wanted = catalogue.experiment(experiment, [*_measure_settings(budget, precision), *set_])
    provide_packages([catalogue.stack(arm.stack) for arm in wanted.arms.values()], yes=yes)

    from webdyno.run.session import begin_run, carry_on

    with begin_run(Path(experiment).stem, wanted, catalogue, out) as folder:
        try:
            with RunProgress(folder.head) as progress:
                carry_on(folder, catalogue, progress)
        except KeyboardInterrupt:
            tell_where(folder)
            return Exit.INTERRUPTED
        return show_result(folder)


def _measure_settings(budget: str | None, precision: float | None) -> list[str]:
    """Give the flags for which there is a setting of the experiment as such settings."""
    settings = []
    if budget is not None:
        settings.append(f"measure.budget_s={parse_duration_s(budget, '--budget')}")
    if precision is not None:
        settings.append(f"measure.precision={precision}")
    return settings
