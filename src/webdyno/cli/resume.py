"""`webdyno resume`: an interrupted run goes on."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.flags import PLAIN_RUN, USUAL_TIME, BudgetFlag, RunFlags
from webdyno.cli.result import go_on_and_show, sweeps_afterwards
from webdyno.lab.ending import Exit
from webdyno.model.cluster import FLEET_FILE, SPREAD_FILE
from webdyno.model.errors import UserError


def resume(
    run: Annotated[Path, Parameter(help="The folder of a run.")],
    *,
    budget: BudgetFlag = USUAL_TIME,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Go on with a run after Ctrl-C, a crash or a full disk; finished rounds aren't repeated.

    Everything comes from the run's folder, its part of the catalogue included. On another machine,
    or with other versions of servers and tools, the run is refused: begin it again there. The
    folder of several hosts (--replicates, --spread) goes on where its runs were begun, and on other
    hosts where it must. --budget counts from now on, and measures even if the run had ended.

    For example

        webdyno resume runs/2026-11-21-093000-static-hello

        webdyno resume runs/2026-11-21-093000-static-hello --budget 5m
    """
    if any((run / it).exists() for it in (FLEET_FILE, SPREAD_FILE)):
        if budget.given is not None:
            raise UserError("--budget is for a single run: give the folder of a host's")
        from webdyno.cli.fleet import measure_and_show_all
        from webdyno.lab.dispatch import begun_in

        return measure_and_show_all(begun_in(run), how)
    return go_on_and_show(run, how, budget.seconds, afterwards=sweeps_afterwards(how))
