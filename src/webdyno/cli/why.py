"""`webdyno why`: what limits the arms of a run, and what would mend it, found by experiment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console, tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import PLAIN_RUN, USUAL_TIME, BudgetFlag, RunFlags
from webdyno.cli.measure import measure, measure_on
from webdyno.definitions import Catalogue
from webdyno.model.experiment import OWN_GENERATOR, Experiment
from webdyno.model.mistake import Mistake
from webdyno.model.run import RunHead, arm_folder
from webdyno.model.why import Advice
from webdyno.run.folder import HEAD_FILE, RunFolder

WHY, SETTINGS, PROFILE, ADVICE = "why", "settings", "profile", "advice"


def why(
    run: Annotated[Path, Parameter(help="The folder of a run.")],
    *,
    arm: Annotated[
        Sequence[str],
        Parameter(
            help="Of this arm alone, by its name or a part that no other has; may be given again. "
            "Else of all."
        ),
    ] = (),
    settings: Annotated[
        bool,
        Parameter(
            help="Find which of the settings in which two arms differ make their difference."
        ),
    ] = False,
    advice: Annotated[
        bool,
        Parameter(
            help="Name the settings of each arm that are known to make servers slow, and better "
            "ones."
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
            help="Folder of the new runs, one for each arm; what is in it already is gone on with. "
            "Else `why` in the run's own."
        ),
    ] = None,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Find what limits the arms of a run: each is measured beside itself with one thing changed.

    Some of the servers' CPU time is taken, of the client's, of the link's rate, of the memory, of
    the connections, half of the workers: what there is of these. By how much the rate falls
    tells what limits it. It works for any program, and needs no profiler. The limits are kept by
    the kernel's control groups, which takes root. A whole run for each arm, of one to three minutes
    unless --budget says otherwise.

    For example

        webdyno why runs/2026-11-21-093000-static-hello

        webdyno why runs/2026-11-21-093000-static-hello --arm nginx

    With --settings arms of one stack are compared: arms that have each setting as in the one or as
    in the other, in all combinations or a balanced part of these, meet in blocks.

        webdyno why runs/2026-11-21-093000-tune --settings --arm default --arm tuned

    With --advice settings are named that are known to make servers slow, where the run shows that
    they can matter; with --try each of them meets the arm as it is in blocks, and what it is worth
    is told with its interval.

        webdyno why runs/2026-11-21-093000-static-hello --advice --try

    With --profile the difference of CPU time per request is taken apart by what is done: accepting,
    receiving, sending, files, each program's and library's own code.

        webdyno why runs/2026-11-21-093000-static-hello --profile
    """
    from webdyno.run.repeat import kept_catalogue

    found = RunFolder.open(run)
    budget_s = budget.seconds
    head = found.head if budget_s is None else _within(found.head, budget_s)
    arm = [_named(head.experiment, it) for it in arm]
    catalogue, folder = kept_catalogue(run), out or run / WHY
    if try_ and not advice:
        raise Mistake("--try measures what --advice names; give both")
    if advice:
        suspected = _suspected(found, arm, catalogue)
        return _try(suspected, head, catalogue, folder, how) if try_ else _tell(suspected)
    if settings:
        return _which_setting(head.experiment, arm, catalogue, folder / SETTINGS, how)
    if profile:
        return _sampled(found, head.experiment, catalogue, folder / PROFILE, how)
    return _limits(arm, head, catalogue, folder, how)


def _within(head: RunHead, budget_s: float) -> RunHead:
    """Give the head of a run whose experiment has that budget."""
    experiment = head.experiment.with_measure(budget_s=budget_s, patience=1.0)
    return head.replace(experiment=experiment)


def why_afterwards(experiment: Experiment, how: RunFlags) -> Callable[[Path], Exit]:
    """Give what `--why` asks of a run once it has come to its end; raise Mistake if it can't."""
    _check_load(experiment)
    return lambda run: why(run, how=replace(how, report=False))


def _limits(
    arms: Sequence[str], head: RunHead, catalogue: Catalogue, folder: Path, how: RunFlags
) -> Exit:
    from webdyno.host.limits import CpuLimit
    from webdyno.judge import judge
    from webdyno.judge.questions.interventions import what_limits
    from webdyno.judge.time_spent import where_time_goes
    from webdyno.run.why import limits_experiment

    _check_load(head.experiment)
    cpu_time_is_ours = CpuLimit.possible()
    if not cpu_time_is_ours:
        tell(
            "CPU time can't be taken here, from servers or client: that takes root and the "
            "kernel's control groups; the rest is tried"
        )
    told, waits = [], []
    for name in arms or head.experiment.arms:
        asked = limits_experiment(
            name,
            head.experiment,
            catalogue,
            head.machine.split,
            cpu_time_is_ours=cpu_time_is_ours,
        )
        path = folder / arm_folder(name)
        if (code := _measured(f"{WHY}: {name}", asked, catalogue, path, how)) is Exit.INTERRUPTED:
            return code
        found = RunFolder.open(path)
        judged = judge(found.data().points[0])
        told += judged.elasticities
        waits += judged.waiting[:1]  # that of the arm as it is
    _print([*what_limits(told), *where_time_goes(waits)])
    return Exit.OK


def _measured(
    name: str, asked: Experiment, catalogue: Catalogue, path: Path, how: RunFlags
) -> Exit:
    """Measure it, or go on with what is there."""
    if (path / HEAD_FILE).exists():
        return measure_on(path, how)
    return measure(name, asked, catalogue, path, how)


def _print(lines: Iterable[str]) -> None:
    console = plain_console()
    for line in lines:
        console.print(line)


def _suspected(
    found: RunFolder, arms: Sequence[str], catalogue: Catalogue
) -> dict[str, list[Advice]]:
    """Give what is known to make servers slow, by arm, of all that a run shows."""
    from webdyno.judge.questions.interventions import advice_evidence
    from webdyno.run.why import advice_for

    experiment, split = found.head.experiment, found.head.machine.split
    data = found.data().points[0]
    shown = {name: advice_evidence(data, name) for name in arms or experiment.arms}
    return {name: advice_for(name, experiment, catalogue, split, it) for name, it in shown.items()}


def _tell(suspected: Mapping[str, Sequence[Advice]]) -> Exit:
    from webdyno.judge.questions.interventions import worth_trying

    _print(line for name, advice in suspected.items() for line in worth_trying(name, advice))
    return Exit.OK


def _try(
    suspected: Mapping[str, list[Advice]],
    head: RunHead,
    catalogue: Catalogue,
    folder: Path,
    how: RunFlags,
) -> Exit:
    from webdyno.judge import judge
    from webdyno.judge.questions.interventions import what_settings_are_worth
    from webdyno.run.why import advice_experiment

    told = []
    for name, advice in suspected.items():
        if not advice:
            continue
        asked = advice_experiment(name, head.experiment, advice)
        path = folder / f"{ADVICE}-{arm_folder(name)}"
        code = _measured(f"{WHY} --advice: {name}", asked, catalogue, path, how)
        if code is Exit.INTERRUPTED:
            return code
        found = RunFolder.open(path)
        told += judge(found.data().points[0]).gains
    _print(what_settings_are_worth(told))
    return _tell({name: advice for name, advice in suspected.items() if not advice})


def _sampled(
    found: RunFolder, experiment: Experiment, catalogue: Catalogue, path: Path, how: RunFlags
) -> Exit:
    """Measure again with samples; where none can be had, tell what the run's counters say."""
    from webdyno.judge import judge
    from webdyno.judge.time_spent import explanation_sentence
    from webdyno.probe.profile import sampling_fault
    from webdyno.run.why import sampled_experiment

    if fault := sampling_fault():
        tell(f"no samples: {fault}. What the kernel counted of the run goes without:")
        explained = judge(found.data().points[0]).explanations
        _print(
            explanation_sentence(it) or f"{it.a} and {it.b}: no difference is sure"
            for it in explained
        )
        return Exit.OK
    asked = sampled_experiment(experiment, catalogue)
    return _measured(f"{WHY} --profile", asked, catalogue, path, how)


def _which_setting(
    experiment: Experiment, arms: Sequence[str], catalogue: Catalogue, path: Path, how: RunFlags
) -> Exit:
    from webdyno.run.factorial import factorial_experiment

    pair = list(arms or experiment.arms)
    if len(pair) != 2:
        raise Mistake(
            f"--settings compares two arms, and these are {', '.join(pair)}; name two with --arm"
        )
    one, other = pair
    asked = factorial_experiment(one, other, experiment)
    return _measured(f"{WHY} --settings", asked, catalogue, path, how)


def _named(experiment: Experiment, asked: str) -> str:
    """Give the arm of that name, or the only one that has it in its name."""
    having = [asked] if asked in experiment.arms else [it for it in experiment.arms if asked in it]
    if len(having) == 1:
        return having[0]
    fault = "several arms have that in their names" if having else "the run has no such arm"
    raise Mistake(f"--arm {asked}: {fault}; it has {', '.join(experiment.arms)}")


def _check_load(experiment: Experiment) -> None:
    """Refuse what no rate can tell of."""
    if experiment.capacity or any(
        experiment.load_of(name).loop == "open" for name in experiment.arms
    ):
        raise Mistake(
            "an open loop's rate is given and tells of no limit: measure a closed loop, then ask "
            "why of that"
        )
    if experiment.generator != OWN_GENERATOR:
        raise Mistake(
            f"the run's load was made by {experiment.generator}; measure with webdyno's own "
            "generator, then ask why of that"
        )
