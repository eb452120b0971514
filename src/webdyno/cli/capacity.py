"""`webdyno capacity`: how much one stack, or each of two, can take while objectives hold."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import tell
from webdyno.cli.duel import NOTHING_SAID, AskedFlags, arranged
from webdyno.cli.exits import Exit
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Out, RunFlags
from webdyno.cli.measure import Afterwards, measure, measure_on
from webdyno.cli.quantities import parse_duration_s
from webdyno.definitions import CommandLine, settings
from webdyno.definitions.toml_file import KeyPath
from webdyno.model.experiment import Experiment
from webdyno.model.format import duration
from webdyno.model.metrics import CAPACITY
from webdyno.model.mistake import Mistake
from webdyno.run.folder import HEAD_FILE, RunFolder

USUAL_OBJECTIVES = ("p99<50ms",)


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
            help="What has to hold: a percentile of response times, as 'p99<50ms', or "
            "'failures<0.1%'; may be given again, then all have to."
        ),
    ] = USUAL_OBJECTIVES,
    sweep: Annotated[
        str | None,
        Parameter(
            help="Afterwards, for so long, such as 10m: response times at rates around the "
            "capacities, and rates at numbers of connections."
        ),
    ] = None,
    asked: AskedFlags = NOTHING_SAID,
    out: Out = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Find the highest load that one or two stacks carry while objectives hold.

    Requests come as from independent users, whether or not the servers keep up. In each block the
    servers are started anew, and each one's capacity is searched for anew: it takes a while.

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
        raise Mistake(f"--sweep {sweep}: is drawn for two systems; name one to compare with")
    if sweep is not None:
        search["sweep_s"] = parse_duration_s(sweep, "--sweep")
        flags["capacity", "sweep_s"] = f"--sweep {sweep}"
    more = CommandLine({"capacity": search}, flags)
    name, experiment, catalogue = arranged(
        [baseline, stack] if baseline else [stack], asked, run, more
    )
    return measure(
        name,
        experiment,
        catalogue,
        out,
        run.how,
        fail_on=run.fail_on,
        afterwards=sweeps_afterwards(run.how),
    )


def refuse_loop(given: Sequence[str]) -> None:
    """Raise Mistake for a loop that is asked for where the search brings its own."""
    for setting in settings(given):
        if setting.key == ("load", "loop"):
            raise Mistake(
                f"{setting.flag}: the search for a capacity sets the rate of an open loop by "
                "itself; leave it out"
            )


def sweeps_afterwards(how: RunFlags) -> Afterwards:
    """Give what measures the sweeps beside a search, in its folder, or goes on with them."""
    return partial(_sweep, how=how)


def _sweep(run: Path, how: RunFlags) -> Exit:
    found = RunFolder.open(run)
    asked = found.head.experiment.capacity
    if asked is None or asked.sweep_s is None:
        return Exit.OK
    from webdyno.report.view import see
    from webdyno.run.capacity import capacity_sweeps

    seen = see(found.data())
    (judgement,) = (point.judgement for point in seen.view.points)
    capacities_rps = [
        it.interval.estimate for it in judgement.arms if it.metric == CAPACITY and it.interval
    ]
    tell(f"\nbeside the capacities, for {duration(asked.sweep_s)}:")
    for name, sweep in capacity_sweeps(found.head.experiment, capacities_rps):
        if _measured_sweep(run / name, sweep, run, how) is Exit.INTERRUPTED:
            return Exit.INTERRUPTED
    if how.report:
        from webdyno.report.result_page import write_report

        write_report(run, seen.view)  # again: now with links to what stands beside it
    return Exit.OK


def _measured_sweep(path: Path, sweep: Experiment, run: Path, how: RunFlags) -> Exit:
    """Measure a sweep at as many levels as fit into its time, or what is missing of it."""
    from webdyno.run.budget import reduce_levels
    from webdyno.run.repeat import kept_catalogue
    from webdyno.run.session import is_finished

    if (path / HEAD_FILE).exists():
        begun = RunFolder.open(path)
        if is_finished(begun.data()):
            return Exit.OK
        return measure_on(path, how)
    catalogue = kept_catalogue(run)
    kept = reduce_levels(sweep, catalogue, sweep.measure.budget_s)
    return measure(path.name, kept, catalogue, path, how)
