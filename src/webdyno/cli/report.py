"""`webdyno report`: verdict and report made again from a run's folder."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.result import show_result
from webdyno.run.folder import RunFolder


def report(
    run: Annotated[Path, Parameter(help="The run's folder, as named at the end of the run.")],
) -> Exit:
    """Judge a run again and write its report anew; nothing is measured.

    For example

        webdyno report runs/2026-11-21-093000-static-hello
    """
    return show_result(RunFolder.open(run))
