"""`webdyno tune`: what each side can do when both are tuned with equal effort."""

import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.cli.capacity import refuse_loop
from webdyno.cli.console import plain_console, tell
from webdyno.cli.duel import NOTHING_SAID, AskedFlags, arm_names, arranged
from webdyno.cli.exits import Exit
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, RunFlags
from webdyno.cli.measure import measure, measure_on
from webdyno.cli.quantities import parse_duration_s
from webdyno.definitions import CommandLine
from webdyno.definitions.validation import shown_value
from webdyno.model.format import count, duration, percent
from webdyno.model.mistake import Mistake, Trouble
from webdyno.run.folder import HEAD_FILE, RunFolder

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.run.tuning import Contender

FINAL = "final"
MOST_BLOCKS = {0: 10}
"""Of a round, by point: it ends when one of its candidates is left."""


def tune(
    stack: Annotated[
        str, Parameter(help="What is tuned: a stack, or a system of your own that has knobs.")
    ],
    baseline: Annotated[
        str | None, Parameter(help="What it is compared with, tuned for as long.")
    ] = None,
    *,
    each: Annotated[str, Parameter(help="Time for the search of each side, such as 30m.")] = "15m",
    slo: Annotated[
        Sequence[str],
        Parameter(
            help="Tune for the capacity under this objective, as in capacity; may be given again."
        ),
    ] = (),
    asked: AskedFlags = NOTHING_SAID,
    out: Annotated[
        Path | None, Parameter(help="Folder of the runs; what is in it already is gone on with.")
    ] = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Look for better settings of one or two stacks, then compare default and tuned afresh.

    Both sides get the same time, and all knobs that their stacks have for it in the catalogue, each
    with its range and the vendor's documentation. What the search thinks of its best isn't reported
    as a result, since the best of many noisy values looks better than it is: fresh blocks judge it.
    --budget is for these (5m).

    For example

        webdyno tune nginx-phpfpm

        webdyno tune nginx-phpfpm apache-prefork-modphp --site wordpress --each 15m

        webdyno tune nginx apache-event --set measure.decide_on=server_cpu_us

        webdyno tune nginx-phpfpm --site wordpress --slo 'p99<500ms' --each 1h

    To leave a knob alone, set it: --set arms.nginx-phpfpm.knobs.children=16
    """
    from webdyno.report.terminal import print_document
    from webdyno.report.tuning import search_document
    from webdyno.run.tuning import FINAL_BLOCKS, FINAL_BUDGET_S, Contender, final_experiment

    if find_spec("optuna") is None:
        raise Trouble(
            "tuning takes Optuna, an extra of webdyno: install 'webdyno[tune]', or in a checkout "
            f"run .dyno/uv/bin/uv pip install --python {sys.executable} optuna"
        )
    if slo:
        refuse_loop(asked.flags.setup.set_)
    each_s = parse_duration_s(each, "--each")
    more = CommandLine({"capacity": {"slo": list(slo)}} if slo else {}, {("capacity",): "--slo"})
    systems = [stack, baseline or stack]
    names = arm_names(systems if baseline else [stack])
    name, experiment, catalogue = arranged(
        systems, asked, run, more, names if baseline else [*names, f"{names[0]} again"]
    )
    if experiment.factors:
        raise Mistake("--vary: settings are tuned for one load at a time; leave it out")
    folder = out or Path("runs") / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-tune-{name}"
    arms = experiment.arms
    sides = [Contender(each, arms[each], experiment, catalogue, folder) for each in names]
    for side in sides:
        side.check()
    is_over = _search(sides, each_s, run.how)
    found = [side.summary() for side in sides]
    has_final = (folder / FINAL / HEAD_FILE).exists()
    if not has_final:
        print_document(plain_console(), search_document(found))
    if not is_over:
        tell(f"interrupted; the same command with --out {folder} goes on")
        return Exit.INTERRUPTED
    final = final_experiment(sides, found, experiment)
    if final is None:
        tell("no settings were found that are better than the default: nothing is left to compare")
        return Exit.OK
    if asked.flags.budget.given is None and not slo:
        final = final.with_measure(budget_s=FINAL_BUDGET_S, max_blocks=FINAL_BLOCKS, patience=1.0)
    if has_final:
        return measure_on(folder / FINAL, run.how)
    return measure(FINAL, final, catalogue, folder / FINAL, run.how, fail_on=run.fail_on)


def _search(sides: Sequence["Contender"], each_s: float, run: RunFlags) -> bool:
    """Give the sides rounds in turns until their time is used up; False when interrupted."""
    left = list(sides)
    while going := sorted((it for it in left if it.fits(each_s)), key=lambda it: it.used_s):
        side = going[0]
        try:
            code = _round(side, run)
        except KeyboardInterrupt:  # before the first block
            code = Exit.INTERRUPTED
        if code is Exit.INTERRUPTED:
            return False
        if code is None:
            left.remove(side)
    return True


def _round(side: "Contender", run: RunFlags) -> Exit | None:
    """Measure a side's next round, or the rest of an interrupted one; None when there is none."""
    from webdyno.run.session import rounds_are_over

    last = side.rounds[-1] if side.rounds else None
    if last is not None and not rounds_are_over(last.data()):
        code = measure_on(last.path, run, None, MOST_BLOCKS, show=_nothing)
        if code is not Exit.INTERRUPTED and not rounds_are_over(last.data()):
            raise Trouble(f"{last.path} came to no end: its default doesn't run through a block")
        return code
    experiment, path = side.next_round(), side.next_folder
    if experiment is None:
        return None
    try:
        code = measure(
            experiment.title,
            experiment,
            side.catalogue,
            path,
            run,
            MOST_BLOCKS,
            show=_nothing,
        )
    finally:
        if (path / HEAD_FILE).exists():
            side.rounds.append(RunFolder.open(path))
    tell(
        f"{side.name}: {duration(round(side.used_s))} used, "
        f"{count(len(side.tried), 'setting')} tried; {_best(side)}"
    )
    return code


def _best(side: "Contender") -> str:
    from webdyno.search.tuning import best_of

    best = best_of(side.tried)
    if best is None:
        return "nothing better than the default so far"
    words = ", ".join(f"{knob}={shown_value(value)}" for knob, value in best.settings.items())
    return f"best so far, as the search sees it: {percent(exp(best.gain) - 1)} better with {words}"


def _nothing(_: RunFolder) -> Exit:
    """Show nothing of a round: it is no result."""
    return Exit.OK
