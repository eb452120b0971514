"""`webdyno capacity`: how much systems can take while objectives hold."""

from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import Exit, UserError
from webdyno.interfaces.cli.experiment_flags import (
    NOTHING_SAID,
    AskedFlags,
    Objectives,
    asked_systems,
    refuse_loop,
)
from webdyno.interfaces.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Output, flag

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config.reading import KeyPath

USUAL_OBJECTIVES = ("p99<50ms",)
SWEPT = 0.5
"""Of all time: what the curves get."""
USUAL_SWEEP_S = 600.0


def capacity(
    *systems: Annotated[
        str,
        flag("SYSTEM: as in compare; one is enough. The last of several: the baseline."),
    ],
    slo: Objectives = USUAL_OBJECTIVES,
    curves: Annotated[
        bool,
        flag(
            "Then measure latency by arrival rate, and throughput by connections, for half of "
            "the time."
        ),
    ] = False,
    asked: AskedFlags = NOTHING_SAID,
    output: Output = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Find the highest load that systems carry while objectives hold.

    Requests arrive as from independent users, whether or not the servers keep up.

    For example

        webdyno capacity nginx

        webdyno capacity rev:. rev:main --slo 'p99<200ms'

        webdyno capacity node nginx --slo 'p99.9<100ms' --slo 'failures<0.1%' --time 30m
    """
    from webdyno.config import Catalogue, CommandLine
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import measure_and_show, sweeps_afterwards
    from webdyno.launch.arrangement import arrange

    if not systems:
        raise UserError("capacity takes a system, such as nginx, or several to compare")
    refuse_loop(asked.flags.setup.set_)
    catalogue = Catalogue.load(run.catalog)
    named, asked = asked_systems(systems, catalogue, asked)
    search: dict[str, object] = {"slo": list(slo)}
    flags: dict[KeyPath, str] = {
        ("capacity",): "--slo",
        ("capacity", "slo"): f"--slo {' --slo '.join(slo)}",
    }
    read = asked.read()
    if curves:
        if len(named) == 1:
            raise UserError("--curves: are drawn for two systems; name one to compare with")
        time_s = asked.flags.time.seconds
        search["sweep_s"] = USUAL_SWEEP_S if time_s is None else time_s * SWEPT
        flags["capacity", "sweep_s"] = "--curves"
        read = read.with_time_s(time_s and time_s * (1 - SWEPT))
    name, experiment, catalogue = arrange(
        named[::-1],
        read,
        catalogue,
        at_terminal(run.how),
        CommandLine({"capacity": search}, flags),
    )
    return measure_and_show(
        name,
        experiment,
        catalogue,
        output,
        run.how,
        fail_if=run.fail_if,
        afterwards=sweeps_afterwards(run.how),
    )
