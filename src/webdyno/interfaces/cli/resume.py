"""`webdyno resume`: an interrupted run goes on."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.core.errors import UserError
from webdyno.core.exit_codes import Exit
from webdyno.interfaces.cli.flags import PLAIN_RUN, USUAL_TIME, RunFlags, TimeFlag


def resume(
    run: Annotated[Path, Parameter(help="RUN: folder of a run.")],
    *,
    time: TimeFlag = USUAL_TIME,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Continue a run after Ctrl-C, a crash or a full disk.

    Finished rounds aren't repeated. Everything comes from the run's folder, its part of the catalog
    included. On another machine, or with other versions of servers and tools, the run is refused.
    --time counts from now on, and measures even if the run had ended.

    For example

        webdyno resume runs/2026-11-21-093000-static-hello

        webdyno resume runs/2026-11-21-093000-static-hello --time 5m
    """
    from webdyno.cluster.orders import FLEET_FILE, SPREAD_FILE
    from webdyno.interfaces.cli.result import go_on_and_show, sweeps_afterwards

    if any((run / name).exists() for name in (FLEET_FILE, SPREAD_FILE)):
        if time.given is not None:
            raise UserError("--time is for a single run: give the folder of a host's")
        from webdyno.interfaces.cli.machines import measure_and_show_all
        from webdyno.launch.dispatch import begun_in

        return measure_and_show_all(begun_in(run), how)
    return go_on_and_show(run, how, time.seconds, afterwards=sweeps_afterwards(how))
