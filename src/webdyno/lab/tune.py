"""Tuning: contenders get batches of settings in turns, until the time of each is used up."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webdyno.definitions import Catalogue, CommandLine
from webdyno.definitions.validation import shown_value
from webdyno.lab.caller import Caller
from webdyno.lab.measure import measure_anew, measure_on
from webdyno.lab.names import NamedSystem, variant_names
from webdyno.lab.systems import AskedSystems, arranged
from webdyno.model.errors import OperationError, UserError
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, duration, percent
from webdyno.model.run import folder_under_runs
from webdyno.model.setting import TunedVariant
from webdyno.run.folder import HEAD_FILE, RunFolder

if TYPE_CHECKING:  # Optuna is an extra
    from webdyno.run.tuning import Contender

FINAL = "final"
EACH_S = 900.0
SEARCHES_PART = 3
MOST_ROUNDS = {0: 10}
"""Of a batch, by point: it ends when one of its candidates is left."""


class TuningTimes(NamedTuple):
    """How the time of a tuning is shared out."""

    each_s: float
    """For the search of each variant."""
    final_s: float | None
    """For the comparison of what was found; None: as the experiment has it."""


@dataclass(frozen=True)
class Tuning:
    """One or two systems that are tuned for the same, in a folder that has all batches."""

    folder: Path
    experiment: Experiment
    """What is asked of them."""
    catalogue: Catalogue
    contenders: "Sequence[Contender]"
    is_for_capacity: bool = False

    @classmethod
    def of(
        cls,
        system: str,
        baseline: str | None,
        slo: Sequence[str],
        asked: AskedSystems,
        catalogue: Catalogue,
        output: Path | None,
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
        named = [NamedSystem.of(name) for name in ([system, baseline] if baseline else [system])]
        names = variant_names(named)
        asked = asked.without_time()
        both = names if baseline else [*names, f"{names[0]} again"]
        systems = [system, baseline or system]
        name, experiment, known = arranged(systems, asked, catalogue, caller, more, both)
        if experiment.factors:
            vary = caller.named("--vary")
            raise UserError(f"{vary}: settings are tuned for one load at a time; leave it out")
        folder = output or folder_under_runs(f"tune-{name}", datetime.now().astimezone())
        variants = experiment.variants
        contenders = [Contender(each, variants[each], experiment, known, folder) for each in names]
        for contender in contenders:
            contender.check()
        return cls(folder, experiment, known, contenders, bool(slo))

    @property
    def has_final(self) -> bool:
        """Whether the final run has begun."""
        return (self.folder / FINAL / HEAD_FILE).exists()

    def found(self) -> list[TunedVariant]:
        """Tell what was found for each variant."""
        return [contender.summary() for contender in self.contenders]

    def times(self, time_s: float | None) -> TuningTimes:
        """Share out a time: three parts for the search of each variant, one for the comparison."""
        if time_s is None:
            return TuningTimes(EACH_S, None if self.is_for_capacity else EACH_S / SEARCHES_PART)
        part_s = time_s / (SEARCHES_PART * len(self.contenders) + 1)
        return TuningTimes(SEARCHES_PART * part_s, part_s)

    def final(self, times: TuningTimes) -> Experiment | None:
        """Give the experiment that judges what was found; None where that is nothing."""
        from webdyno.run.tuning import FINAL_ROUNDS, final_experiment

        final = final_experiment(self.contenders, self.found(), self.experiment)
        if final is None or times.final_s is None:
            return final
        return final.with_measure(budget_s=times.final_s, max_rounds=FINAL_ROUNDS, patience=1.0)


def search_in_turns(contenders: Sequence["Contender"], each_s: float, caller: Caller) -> bool:
    """Give the variants batches in turns until their time is used up; False when interrupted."""
    left = list(contenders)
    while going := sorted(
        (contender for contender in left if contender.fits(each_s)),
        key=lambda contender: contender.used_s,
    ):
        contender = going[0]
        try:
            if not _is_unfinished(contender):
                experiment = contender.next_batch()
                if experiment is None:
                    left.remove(contender)
                    continue
                if not _measured(contender, experiment, caller):
                    return False
            elif not _ended(contender, caller):
                return False
        except KeyboardInterrupt:  # before the first round
            return False
    return True


def _is_unfinished(contender: "Contender") -> bool:
    from webdyno.run.session import rounds_are_over

    return bool(contender.batches) and not rounds_are_over(contender.batches[-1].data())


def _ended(contender: "Contender", caller: Caller) -> bool:
    """Measure the rest of a variant's interrupted batch; False when interrupted again."""
    last = contender.batches[-1]
    if measure_on(last.path, caller, None, MOST_ROUNDS).interrupted:
        return False
    if _is_unfinished(contender):
        raise OperationError(f"{last.path} came to no end: its default doesn't run through a round")
    return True


def _measured(contender: "Contender", experiment: Experiment, caller: Caller) -> bool:
    """Measure a variant's next batch; False when interrupted."""
    path, title = contender.next_folder, experiment.title
    try:
        batch = measure_anew(title, experiment, contender.catalogue, path, caller, MOST_ROUNDS)
    finally:
        if (path / HEAD_FILE).exists():
            contender.batches.append(RunFolder.open(path))
    caller.tell(
        f"{contender.name}: {duration(round(contender.used_s))} used, "
        f"{count(len(contender.tried), 'setting')} tried; {_best(contender)}"
    )
    return not batch.interrupted


def _best(contender: "Contender") -> str:
    from webdyno.search.tuning import best_of

    best = best_of(contender.tried)
    if best is None:
        return "nothing better than the default so far"
    words = ", ".join(f"{setting}={shown_value(value)}" for setting, value in best.settings.items())
    return f"best so far, as the search sees it: {percent(exp(best.gain) - 1)} better with {words}"
