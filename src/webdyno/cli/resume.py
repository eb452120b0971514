"""`webdyno resume`: an interrupted run goes on."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.flags import AS_USUAL, Report, RunFlags, Telling, Yes
from webdyno.cli.measure import measure_on
from webdyno.cli.quantities import parse_duration_s


def resume(
    run: Annotated[Path, Parameter(help="The folder of a run.")],
    *,
    budget: Annotated[
        str | None,
        Parameter(help="Measure for so long from now on, such as 90s, even if it had ended."),
    ] = None,
    yes: Yes = False,
    report: Report = True,
    telling: Telling = AS_USUAL,
) -> Exit:
    """Go on with a run after Ctrl-C, a crash or a full disk; finished blocks aren't repeated.

    Everything comes from the run's folder, its part of the catalogue included. On another machine,
    or with other versions of servers and tools, the run is refused: begin it anew there.

    For example

        webdyno resume runs/2026-11-21-093000-static-hello

        webdyno resume runs/2026-11-21-093000-static-hello --budget 5m
    """
    more_s = parse_duration_s(budget, "--budget") if budget is not None else None
    return measure_on(run, RunFlags(yes=yes, report=report, telling=telling), more_s)
