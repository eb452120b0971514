"""`webdyno capacity`: how much one stack, or each of two, can take while objectives hold."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.experiment_flags import NOTHING_SAID, AskedFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Out, parse_duration_s
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import measure_and_show, sweeps_afterwards
from webdyno.definitions import Catalogue, CommandLine, read_overrides
from webdyno.definitions.toml_file import KeyPath
from webdyno.lab.ending import Exit
from webdyno.lab.systems import USUAL_OBJECTIVES, arranged
from webdyno.model.errors import UserError


def capacity(
    stack: Annotated[
        str,
        Parameter(help="What the question is about: a stack, or a system of your own, as in duel."),
    ],
    baseline: Annotated[
        str | None, Parameter(help="What it is compared with, likewise; none is needed.")
    ] = None,
    *,
    slo: Annotated[
        Sequence[str],
        Parameter(
            help="What has to hold: a percentile of latency, as 'p99<50ms', or "
            "'failures<0.1%'; may be given again, then all have to."
        ),
    ] = USUAL_OBJECTIVES,
    sweep: Annotated[
        str | None,
        Parameter(
            help="Afterwards, for so long, such as 10m: latency at arrival rates around the "
            "capacities, and throughput at numbers of connections."
        ),
    ] = None,
    asked: AskedFlags = NOTHING_SAID,
    out: Out = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Find the highest load that one or two stacks carry while objectives hold.

    Requests come as from independent users, whether or not the servers keep up. In each round the
    servers are started again, and each one's capacity is searched for again: it takes a while.

    For example

        webdyno capacity nginx

        webdyno capacity nginx apache-event --slo 'p99<50ms'

        webdyno capacity nginx-phpfpm apache-prefork-modphp --site wordpress --slo 'p99<500ms'

        webdyno capacity node nginx --slo 'p99.9<100ms' --slo 'failures<0.1%' --budget 30m

        webdyno capacity rev:. rev:main --slo 'p99<200ms'

        webdyno capacity nginx apache-event --sweep 10m

    A rate is tried over --set load.connections=N connections at most (64). Requests that wait for
    one are late from when they were due.
    """
    refuse_loop(asked.flags.setup.set_)
    search: dict[str, object] = {"slo": list(slo)}
    flags: dict[KeyPath, str] = {
        ("capacity",): "--slo",
        ("capacity", "slo"): f"--slo {' --slo '.join(slo)}",
    }
    if sweep is not None and baseline is None:
        raise UserError(f"--sweep {sweep}: is drawn for two systems; name one to compare with")
    if sweep is not None:
        search["sweep_s"] = parse_duration_s(sweep, "--sweep")
        flags["capacity", "sweep_s"] = f"--sweep {sweep}"
    more = CommandLine({"capacity": search}, flags)
    name, experiment, catalogue = arranged(
        [baseline, stack] if baseline else [stack],
        asked.read(),
        Catalogue.load(run.catalog),
        at_terminal(run.how),
        more,
    )
    return measure_and_show(
        name,
        experiment,
        catalogue,
        out,
        run.how,
        fail_on=run.fail_on,
        afterwards=sweeps_afterwards(run.how),
    )


def refuse_loop(given: Sequence[str]) -> None:
    """Raise UserError for a loop that is requested where the search brings its own."""
    for setting in read_overrides(given):
        if setting.key == ("load", "loop"):
            raise UserError(
                f"{setting.flag}: the search for a capacity sets the rate of an open loop by "
                "itself; leave it out"
            )
