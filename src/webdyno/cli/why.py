"""`webdyno why`: what limits the arms of a run, found by taking a part of one thing at a time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.cli.flags import PLAIN_RUN, RunFlags
from webdyno.cli.measure import measure, measure_on
from webdyno.definitions import Catalogue
from webdyno.model.experiment import OWN_GENERATOR, Experiment
from webdyno.model.mistake import Mistake
from webdyno.model.run import arm_folder
from webdyno.run.folder import HEAD_FILE, RunFolder

WHY, SETTINGS, PROFILE = "why", "settings", "profile"


def why(
    run: Annotated[Path, Parameter(help="The folder of a run.")],
    *,
    arm: Annotated[
        Sequence[str],
        Parameter(
            help="Of this arm alone; may be given again. Else of all.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    settings: Annotated[
        bool,
        Parameter(
            help="Find which of the settings in which two arms differ make their difference.",
            negative=(),
            show_default=False,
        ),
    ] = False,
    profile: Annotated[
        bool,
        Parameter(
            help="Measure the run's experiment again while `perf` samples what the servers' CPUs "
            "do.",
            negative=(),
            show_default=False,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        Parameter(
            help="Folder of the new runs, one for each arm; what is in it already is gone on with. "
            "Else `why` in the run's own."
        ),
    ] = None,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Find what limits the arms of a run: each is measured beside itself with less of one thing.

    A fifth of the servers' CPU time is taken, of the client's, of the link's rate, of the memory,
    half of the workers: what there is of these. By how much the rate falls tells what limits it.
    It works for any program, and needs no profiler. The limits are kept by the kernel's control
    groups, which takes root. A whole run for each arm, of one to three minutes.

    For example

        webdyno why runs/2026-11-21-093000-static-hello

        webdyno why runs/2026-11-21-093000-static-hello --arm nginx

    With --settings arms of one stack are compared: arms that have each setting as in the one or as
    in the other, in all combinations or a balanced part of these, meet in blocks.

        webdyno why runs/2026-11-21-093000-tune --settings --arm default --arm tuned

    With --profile the difference of CPU time per request is taken apart by what is done: accepting,
    receiving, sending, files, each program's and library's own code.

        webdyno why runs/2026-11-21-093000-static-hello --profile
    """
    from webdyno.judge import judge
    from webdyno.report.elasticity import sentences
    from webdyno.run.interventions import asked_why
    from webdyno.run.repeat import kept_catalogue

    head = RunFolder.open(run).head
    _check_arms(head.experiment, arm)
    catalogue, folder = kept_catalogue(run), out or run / WHY
    if settings:
        return _which_setting(head.experiment, arm, catalogue, folder / SETTINGS, how)
    if profile:
        return _sampled(head.experiment, catalogue, folder / PROFILE, how)
    _check_load(head.experiment)
    told = []
    for name in arm or head.experiment.arms:
        path = folder / arm_folder(name)
        if (path / HEAD_FILE).exists():
            code = measure_on(path, how)
        else:
            asked = asked_why(name, head.experiment, catalogue, head.machine.split)
            code = measure(f"{WHY}: {name}", asked, catalogue, path, replace(how, fail_on=()))
        if code is Exit.INTERRUPTED:
            return code
        found = RunFolder.open(path)
        told += judge(found.head, found.records()).elasticities
    console = plain_console()
    for line in sentences(told):
        console.print(line)
    return Exit.OK


def _sampled(experiment: Experiment, catalogue: Catalogue, path: Path, how: RunFlags) -> Exit:
    if (path / HEAD_FILE).exists():
        return measure_on(path, how)
    asked = experiment.model_copy(update={"profile": True})
    return measure(f"{WHY} --profile", asked, catalogue, path, replace(how, fail_on=()))


def _which_setting(
    experiment: Experiment, arms: Sequence[str], catalogue: Catalogue, path: Path, how: RunFlags
) -> Exit:
    from webdyno.run.settings import asked_which

    pair = list(arms or experiment.arms)
    if len(pair) != 2:
        raise Mistake(
            f"--settings compares two arms, and these are {', '.join(pair)}; name two with --arm"
        )
    if (path / HEAD_FILE).exists():
        return measure_on(path, how)
    one, other = pair
    asked = asked_which(one, other, experiment)
    return measure(f"{WHY} --settings", asked, catalogue, path, replace(how, fail_on=()))


def _check_arms(experiment: Experiment, arms: Sequence[str]) -> None:
    for name in arms:
        if name not in experiment.arms:
            known = ", ".join(experiment.arms)
            raise Mistake(f"--arm {name}: the run has no such arm; it has {known}")


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
