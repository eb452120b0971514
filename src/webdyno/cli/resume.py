"""`webdyno resume`: an interrupted run goes on."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.flags import CatalogDirs, Yes
from webdyno.cli.measure import measure_on
from webdyno.definitions import Catalogue
from webdyno.run.folder import RunFolder


def resume(
    run: Annotated[Path, Parameter(help="The folder of a run that was interrupted.")],
    *,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> Exit:
    """Go on with a run after Ctrl-C, a crash or a full disk; finished blocks aren't repeated.

    For example

        webdyno resume runs/2026-11-21-093000-static-hello
    """
    return measure_on(RunFolder.open(run), Catalogue.load(catalog), yes=yes)
