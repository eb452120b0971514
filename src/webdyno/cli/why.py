"""`webdyno why`: what limits the variants of a run, and what would fix it, found by experiment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console, tell
from webdyno.cli.flags import PLAIN_RUN, USUAL_TIME, BudgetFlag, RunFlags
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import Afterwards, show_measured, showing
from webdyno.lab.ending import Exit
from webdyno.lab.measure import Measured
from webdyno.lab.why import (
    AskedWhy,
    check_load,
    measure_advice,
    measure_limits,
    measure_samples,
    measure_settings,
    suspected_settings,
)
from webdyno.model.errors import UserError
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Judgement
from webdyno.model.why import Advice
from webdyno.run.folder import RunFolder


def why(
    run: Annotated[Path, Parameter(help="The folder of a run.")],
    *,
    variant: Annotated[
        Sequence[str],
        Parameter(
            help="Of this variant alone, by its name or a part that no other has; may be given "
            "again. Else of all."
        ),
    ] = (),
    settings: Annotated[
        bool,
        Parameter(
            help="Find which of the settings in which two variants differ make their difference."
        ),
    ] = False,
    advice: Annotated[
        bool,
        Parameter(
            help="Name the settings of each variant that are known to make servers slow, and "
            "better ones."
        ),
    ] = False,
    try_: Annotated[
        bool, Parameter(name="--try", help="With --advice: measure what each of them is worth.")
    ] = False,
    profile: Annotated[
        bool,
        Parameter(
            help="Measure the run's experiment again while `perf` samples what the servers' CPUs "
            "do."
        ),
    ] = False,
    budget: BudgetFlag = USUAL_TIME,
    out: Annotated[
        Path | None,
        Parameter(
            help="Folder of the new runs, one for each variant; what is in it already is gone on "
            "with. Else `why` in the run's own."
        ),
    ] = None,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Find what limits the variants of a run: each is measured again with one thing changed.

    Some of the servers' CPU time is taken, of the client's, of the link's rate, of the memory, of
    the connections, half of the workers: what there is of these. By how much the throughput falls
    tells what limits it. It works for any program, and needs no profiler. The limits are kept by
    the kernel's control groups, which takes root. A whole run for each variant, of one to three
    minutes unless --budget says otherwise.

    For example

        webdyno why runs/2026-11-21-093000-static-hello

        webdyno why runs/2026-11-21-093000-static-hello --variant nginx

    With --settings variants of one stack are compared: variants that have each setting as in the
    one or as in the other, in all combinations or a balanced part of these, meet in rounds.

        webdyno why runs/2026-11-21-093000-tune --settings --variant default --variant tuned

    With --advice settings are named that are known to make servers slow, where the run shows that
    they can matter; with --try each of them meets the variant as it is in rounds, and what it is
    worth is told with its interval.

        webdyno why runs/2026-11-21-093000-static-hello --advice --try

    With --profile the difference of CPU time per request is taken apart by what is done: accepting,
    receiving, sending, files, each program's and library's own code.

        webdyno why runs/2026-11-21-093000-static-hello --profile
    """
    asked = AskedWhy.of(run, variant, budget.seconds, out)
    caller, show = at_terminal(how), showing(how)
    if try_ and not advice:
        raise UserError("--try measures what --advice names; give both")
    if advice:
        suspected = suspected_settings(asked)
        if not try_:
            return _tell(suspected)
        tried = measure_advice(asked, suspected, caller)
        return _show_gains(_shown(tried, how), suspected)
    if settings:
        return show_measured(measure_settings(asked, caller), show)
    if profile:
        if _tells_without_samples(asked.run):
            return Exit.OK
        return show_measured(measure_samples(asked, caller), show)
    return _show_limits(_shown(measure_limits(asked, caller), how))


def why_afterwards(experiment: Experiment, how: RunFlags) -> Afterwards:
    """Give what `--why` asks of a run once it has come to its end; raise UserError if it can't."""
    check_load(experiment)
    return lambda run: why(run, how=replace(how, report=False))


def _shown(measured: Iterable[Measured], how: RunFlags) -> Iterator[Judgement | None]:
    """Show what is measured, run by run, and judge each; None where one was interrupted."""
    from webdyno.judge import judge

    for each in measured:
        code = show_measured(each, showing(how))
        if code is Exit.INTERRUPTED:
            yield None
            return
        yield judge(each.folder.data().points[0])


def _show_limits(judged: Iterable[Judgement | None]) -> Exit:
    from webdyno.judge.questions.interventions import what_limits
    from webdyno.judge.time_spent import where_time_goes

    told, waits = [], []
    for judgement in judged:
        if judgement is None:
            return Exit.INTERRUPTED
        told += judgement.elasticities
        waits += judgement.waiting[:1]  # that of the variant as it is
    _print([*what_limits(told), *where_time_goes(waits)])
    return Exit.OK


def _show_gains(
    judged: Iterable[Judgement | None], suspected: Mapping[str, Sequence[Advice]]
) -> Exit:
    from webdyno.judge.questions.interventions import what_settings_are_worth

    told = []
    for judgement in judged:
        if judgement is None:
            return Exit.INTERRUPTED
        told += judgement.gains
    _print(what_settings_are_worth(told))
    return _tell({name: advice for name, advice in suspected.items() if not advice})


def _tell(suspected: Mapping[str, Sequence[Advice]]) -> Exit:
    from webdyno.judge.questions.interventions import worth_trying

    _print(line for name, advice in suspected.items() for line in worth_trying(name, advice))
    return Exit.OK


def _tells_without_samples(found: RunFolder) -> bool:
    """Tell what the run's counters say, where no samples can be had; False where they can."""
    from webdyno.judge import judge
    from webdyno.judge.time_spent import explanation_sentence
    from webdyno.probe.profile import sampling_fault

    fault = sampling_fault()
    if fault is None:
        return False
    tell(f"no samples: {fault}. What the kernel counted of the run goes without:")
    _print(
        explanation_sentence(it) or f"{it.a} and {it.b}: no difference is sure"
        for it in judge(found.data().points[0]).explanations
    )
    return True


def _print(lines: Iterable[str]) -> None:
    console = plain_console()
    for line in lines:
        console.print(line)
