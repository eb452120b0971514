"""`webdyno run`: an experiment from its file to a verdict and a report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.flags import (
    THIS_BENCH,
    BenchFlags,
    Budget,
    CatalogDirs,
    ExperimentSettings,
    Factors,
    Out,
    Precision,
    Yes,
)
from webdyno.cli.measure import measure, measure_settings
from webdyno.definitions import Catalogue, factors, settings


def run(
    experiment: Annotated[
        str, Parameter(help="Name of an experiment in the catalogue, or a TOML file.")
    ] = "static-hello",
    *,
    budget: Budget = None,
    precision: Precision = None,
    bench: BenchFlags = THIS_BENCH,
    set_: ExperimentSettings = (),
    vary: Factors = (),
    out: Out = None,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> Exit:
    """Run an experiment: start its stacks, load them in turns, judge, and write a report.

    For example

        webdyno run

        webdyno run static-hello --budget 5m --precision 0.01

        webdyno run static-hello --bench netns --link 100mbit --delay 20ms

        webdyno run mine.toml --set load.connections=16 --set arms.nginx.knobs.workers=1

        webdyno run static-hello --vary load.connections=1,8,64 --budget 10m
    """
    catalogue = Catalogue.load(catalog)
    overrides = [
        *measure_settings(budget, precision),
        *bench.overrides(),
        *settings(set_),
        *factors(vary),
    ]
    wanted = catalogue.experiment(experiment, overrides)
    return measure(Path(experiment).stem, wanted, catalogue, out, yes=yes)
