"""Tuning: contenders get rounds of settings in turns, until the time of each is used up."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.definitions import Catalogue, CommandLine
from webdyno.definitions.validation import shown_value
from webdyno.lab.caller import Caller
from webdyno.lab.measure import measure_anew, measure_on
from webdyno.lab.systems import AskedSystems, arm_names, arranged
from webdyno.model.errors import OperationError, UserError
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, duration, percent
from webdyno.model.knob import TunedSide
from webdyno.run.folder import HEAD_FILE, RunFolder

if TYPE_CHECKING:  # Optuna is an extra
    from webdyno.run.tuning import Contender

FINAL = "final"
MOST_BLOCKS = {0: 10}
"""Of a round, by point: it ends when one of its candidates is left."""


@dataclass(frozen=True)
class Tuning:
    """One or two systems that are tuned for the same, in a folder that has all rounds."""

    folder: Path
    experiment: Experiment
    """What is asked of them."""
    catalogue: Catalogue
    sides: "Sequence[Contender]"

    @classmethod
    def of(
        cls,
        system: str,
        baseline: str | None,
        slo: Sequence[str],
        asked: AskedSystems,
        catalogue: Catalogue,
        out: Path | None,
        caller: Caller,
    ) -> "Tuning":
        """Arrange it; what is in the folder already is gone on with.

        Raise UserError where there is nothing to tune, OperationError where the extra isn't
        installed.
        """
        if find_spec("optuna") is None:
            raise OperationError(
                "tuning takes Optuna, an extra of webdyno: install 'webdyno[tune]', or in a "
                f"checkout run .dyno/uv/bin/uv pip install --python {sys.executable} optuna"
            )
        from webdyno.run.tuning import Contender

        search = {"capacity": {"slo": list(slo)}} if slo else {}
        more = CommandLine(search, {("capacity",): caller.named("--slo")})
        names = arm_names([system, baseline] if baseline else [system])
        both = names if baseline else [*names, f"{names[0]} again"]
        systems = [system, baseline or system]
        name, experiment, known = arranged(systems, asked, catalogue, caller, more, both)
        if experiment.factors:
            vary = caller.named("--vary")
            raise UserError(f"{vary}: settings are tuned for one load at a time; leave it out")
        folder = out or Path("runs") / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-tune-{name}"
        arms = experiment.arms
        sides = [Contender(each, arms[each], experiment, known, folder) for each in names]
        for side in sides:
            side.check()
        return cls(folder, experiment, known, sides)

    @property
    def has_final(self) -> bool:
        """Whether the final run has begun."""
        return (self.folder / FINAL / HEAD_FILE).exists()

    def found(self) -> list[TunedSide]:
        """Tell what was found for each side."""
        return [side.summary() for side in self.sides]

    def final(self, *, usual_budget: bool) -> Experiment | None:
        """Give the experiment that judges what was found; None where that is nothing."""
        from webdyno.run.tuning import FINAL_BLOCKS, FINAL_BUDGET_S, final_experiment

        final = final_experiment(self.sides, self.found(), self.experiment)
        if final is None or not usual_budget:
            return final
        return final.with_measure(budget_s=FINAL_BUDGET_S, max_blocks=FINAL_BLOCKS, patience=1.0)


def search_in_turns(sides: Sequence["Contender"], each_s: float, caller: Caller) -> bool:
    """Give the sides rounds in turns until their time is used up; False when interrupted."""
    left = list(sides)
    while going := sorted((it for it in left if it.fits(each_s)), key=lambda it: it.used_s):
        side = going[0]
        try:
            if not _is_unfinished(side):
                experiment = side.next_round()
                if experiment is None:
                    left.remove(side)
                    continue
                if not _measured(side, experiment, caller):
                    return False
            elif not _ended(side, caller):
                return False
        except KeyboardInterrupt:  # before the first block
            return False
    return True


def _is_unfinished(side: "Contender") -> bool:
    from webdyno.run.session import rounds_are_over

    return bool(side.rounds) and not rounds_are_over(side.rounds[-1].data())


def _ended(side: "Contender", caller: Caller) -> bool:
    """Measure the rest of a side's interrupted round; False when interrupted again."""
    last = side.rounds[-1]
    if measure_on(last.path, caller, None, MOST_BLOCKS).interrupted:
        return False
    if _is_unfinished(side):
        raise OperationError(f"{last.path} came to no end: its default doesn't run through a block")
    return True


def _measured(side: "Contender", experiment: Experiment, caller: Caller) -> bool:
    """Measure a side's next round; False when interrupted."""
    path, title = side.next_folder, experiment.title
    try:
        round_ = measure_anew(title, experiment, side.catalogue, path, caller, MOST_BLOCKS)
    finally:
        if (path / HEAD_FILE).exists():
            side.rounds.append(RunFolder.open(path))
    caller.tell(
        f"{side.name}: {duration(round(side.used_s))} used, "
        f"{count(len(side.tried), 'setting')} tried; {_best(side)}"
    )
    return not round_.interrupted


def _best(side: "Contender") -> str:
    from webdyno.search.tuning import best_of

    best = best_of(side.tried)
    if best is None:
        return "nothing better than the default so far"
    words = ", ".join(f"{knob}={shown_value(value)}" for knob, value in best.settings.items())
    return f"best so far, as the search sees it: {percent(exp(best.gain) - 1)} better with {words}"
