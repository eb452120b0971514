"""`webdyno explain`.

What limits the variants of a run, and what would help, found by experiment.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import Exit, UserError
from webdyno.interfaces.cli.flags import (
    LAST,
    PLAIN_RUN,
    USUAL_TIME,
    RunFlags,
    TimeFlag,
    flag,
    run_folder,
)

if TYPE_CHECKING:  # pydantic and numpy take a while to import
    from webdyno.core.experiment import Experiment
    from webdyno.core.findings import Advice
    from webdyno.core.judgement import Judgement
    from webdyno.interfaces.cli.result import Afterwards
    from webdyno.launch.measure import MeasuredRun
    from webdyno.measure.folder import RunFolder


def explain(
    run: Annotated[Path, flag("RUN: folder of a run.")] = LAST,
    *,
    variant: Annotated[
        Sequence[str],
        flag("NAME: only this variant; a part of its name will do [default: all]"),
    ] = (),
    settings: Annotated[
        bool, flag("Find which of the settings in which two variants differ matter.")
    ] = False,
    advice: Annotated[
        bool, flag("Name settings that are known to make servers slow, and better ones.")
    ] = False,
    try_: Annotated[
        bool, flag("With --advice: measure what each of them is worth.", "--try")
    ] = False,
    profile: Annotated[
        bool, flag("Measure again while `perf` samples what the servers' CPUs do.")
    ] = False,
    time: TimeFlag = USUAL_TIME,
    output: Annotated[
        Path | None,
        flag(
            "DIR: folder of the new runs; what is there is continued [default: RUN/explain]",
            "-o",
            "--output",
        ),
    ] = None,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Find the bottleneck of a run: measure each system again with less of one resource.

    It reduces one resource at a time: server CPU, client CPU, bandwidth, memory, connections,
    workers. How much the throughput falls shows what limits it. It works for any program, and takes
    root for the kernel's control groups, and one to three minutes for each system.

    For example

        webdyno explain runs/2026-11-21-093000-static-hello

        webdyno explain runs/2026-11-21-093000-tune --settings --variant default --variant tuned

        webdyno explain runs/2026-11-21-093000-static-hello --advice --try

        webdyno explain runs/2026-11-21-093000-static-hello --profile
    """
    from webdyno.comparison.waiting import where_time_goes
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import show_measured, showing
    from webdyno.questions.explain.explain import (
        AskedExplanation,
        measure_advice,
        measure_limits,
        measure_samples,
        measure_settings,
        suspected_settings,
    )
    from webdyno.questions.explain.show import what_limits, what_settings_are_worth

    asked = AskedExplanation.of(run_folder(run), variant, time.seconds, output)
    caller, show = at_terminal(how), showing(how)
    if try_ and not advice:
        raise UserError("--try measures what --advice names; give both")
    if advice:
        suspected = suspected_settings(asked)
        if not try_:
            return _show(suspected)
        tried = _show_runs(measure_advice(asked, suspected, caller), how)
        if tried is None:
            return Exit.INTERRUPTED
        _print(what_settings_are_worth([gain for each in tried for gain in each.gains]))
        return _show({name: advice for name, advice in suspected.items() if not advice})
    if settings:
        return show_measured(measure_settings(asked, caller), show)
    if profile:
        if _shows_counters(asked.run):
            return Exit.OK
        return show_measured(measure_samples(asked, caller), show)
    limited = _show_runs(measure_limits(asked, caller), how)
    if limited is None:
        return Exit.INTERRUPTED
    elasticities = [effect for each in limited for effect in each.elasticities]
    waits = [wait for each in limited for wait in each.waiting[:1]]  # of the variant as it is
    _print([*what_limits(elasticities), *where_time_goes(waits)])
    return Exit.OK


def explain_afterwards(experiment: "Experiment", how: RunFlags) -> "Afterwards":
    """Return what `--explain` asks of a run that came to its end; raise UserError if it can't."""
    from webdyno.questions.explain.explain import check_load

    check_load(experiment)
    return lambda run: explain(run, how=replace(how, report=False))


def _show_runs(measured: "Iterable[MeasuredRun]", how: RunFlags) -> "list[Judgement] | None":
    """Show what is measured, run by run, and judge each; None where one was interrupted."""
    from webdyno.comparison import judge
    from webdyno.interfaces.cli.result import show_measured, showing

    judged = []
    for each in measured:
        if show_measured(each, showing(how)) is Exit.INTERRUPTED:
            return None
        judged.append(judge(each.folder.data().points[0]))
    return judged


def _show(suspected: "Mapping[str, Sequence[Advice]]") -> Exit:
    from webdyno.questions.explain.show import worth_trying

    _print(line for name, advice in suspected.items() for line in worth_trying(name, advice))
    return Exit.OK


def _shows_counters(run: "RunFolder") -> bool:
    """Print what the run's counters say where no samples can be had; False where they can."""
    from webdyno.comparison import judge
    from webdyno.comparison.time_spent import explanation_sentence
    from webdyno.media.console import notify
    from webdyno.probes.profile import sampling_fault

    fault = sampling_fault()
    if fault is None:
        return False
    notify(f"no samples: {fault}. What the kernel counted of the run goes without:")
    _print(
        explanation_sentence(explanation)
        or f"{explanation.a} and {explanation.b}: no difference is sure"
        for explanation in judge(run.data().points[0]).explanations
    )
    return True


def _print(lines: Iterable[str]) -> None:
    from webdyno.media.console import plain_console

    console = plain_console()
    for line in lines:
        console.print(line)
