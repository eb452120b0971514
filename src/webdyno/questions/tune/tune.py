"""Tuning: contenders get batches of settings in turns, until the time of each is used up.

A batch is a run of its own: the default and some settings, of which each round sorts out the worse
half. So a search that was interrupted goes on from its folders.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import exp
from pathlib import Path
from typing import NamedTuple

from webdyno.config import Catalogue, CommandLine
from webdyno.config.checks import settings_of
from webdyno.config.reading import shown_value
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, duration, percent
from webdyno.core.question import FEWEST_IN_RACE, RANKING, settings_class
from webdyno.core.records import RoundRecord
from webdyno.core.run import folder_under_runs
from webdyno.core.setting import Setting, SettingValue, TunedVariant, TuningStep
from webdyno.core.variant import Variant
from webdyno.launch.arrangement import AskedSystems, arrange
from webdyno.launch.caller import Caller
from webdyno.launch.extras import provide_extra
from webdyno.launch.measure import measure_again, measure_on
from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.measure.point import rng_of
from webdyno.measure.session import rounds_are_over, with_seed
from webdyno.measure.variant import SEED_BITS
from webdyno.questions.tune.decide import (
    TriedSettings,
    best_of,
    gains_on_baseline,
    key_of,
    next_settings,
    shares_of,
    space_of,
)
from webdyno.questions.tune.settings import HalvingSettings
from webdyno.systems.kinds import NamedSystem, variant_names
from webdyno.validity import used_s

FINAL = "final"
EACH_S = 900.0
SEARCHES_PART = 3
MOST_ROUNDS = {0: 10}
"""Of a batch, by point: it ends when one of its candidates is left."""
DEFAULT = "default"
CANDIDATES = 8
"""Settings of a batch next to the default."""
BROKEN = -3.0
"""ln of the gain of settings with which a server doesn't do what it is asked for."""
ROUND_BUDGET_S = 600.0
"""Longer than batches take: pilots shorten windows to what so many variants leave of it."""
FINAL_ROUNDS = 400

SHOWN = (
    "`webdyno list stacks {stack}` shows those of a stack; `tune` in a service's file says that a "
    "setting may be tuned"
)
DECLARED = (
    "of a system of your own you say what may be changed, such as settings.workers = "
    '{ type = "whole", min = 1, max = 16 } below [app] in webdyno.toml, for `webdyno tune rev:.`'
)
"""Where settings are, of a stack of the catalogue and of a user's own system."""


@dataclass
class Contender:
    """What is tuned: what may be changed of it, what was tried so far, what comes next."""

    name: str
    variant: Variant
    experiment: Experiment
    catalogue: Catalogue
    folder: Path
    batches: list[RunFolder] = field(default_factory=list)

    @cached_property
    def space(self) -> dict[str, Setting]:
        """The settings that are tuned."""
        stack = self.catalogue.stack(self.variant.stack)
        site = self.catalogue.site(self.variant.site or self.experiment.site)
        return space_of(settings_of(stack, site), self.variant.settings)

    def check(self) -> None:
        """Raise UserError where there is nothing to tune; find an earlier session's batches."""
        if not self.space:
            is_own = self.catalogue.stack(self.variant.stack).is_own
            where = DECLARED if is_own else SHOWN.format(stack=self.variant.stack)
            raise UserError(f"{self.name} has no setting to tune: {where}")
        while (self.next_folder / HEAD_FILE).exists():
            self.batches.append(RunFolder.open(self.next_folder))

    @property
    def next_folder(self) -> Path:
        """Where the next batch is kept."""
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", self.name).strip("-.")
        return self.folder / f"{slug}-{len(self.batches) + 1:02}"

    @property
    def tried_settings(self) -> list[TriedSettings]:
        return _tried_in(self.batches, self.space)

    @property
    def used_s(self) -> float:
        return sum(map(_took_s, self.batches))

    def fits(self, each_s: float) -> bool:
        """Whether another batch fits into its time; the first one always does."""
        longest_s = max(map(_took_s, self.batches), default=0.0)
        return not self.batches or self.used_s + longest_s <= each_s

    def next_batch(self) -> Experiment | None:
        """Make the next batch; None when all there is was tried.

        The best so far has to prove itself again in each. Where nothing new is left, the better
        ones of what was tried are compared again.
        """
        tried, asked = self.tried_settings, self.experiment
        if not self.batches:
            asked = with_seed(asked)
        first = self.batches[0].head.experiment if self.batches else asked
        draw = rng_of(first.measure.seed, len(self.batches), "settings")
        fresh = next_settings(self.space, tried, CANDIDATES, draw.getrandbits(SEED_BITS))
        known = sorted(tried, key=lambda candidate: -candidate.gain)
        again = known[:1] if fresh else known[: CANDIDATES // 2]
        candidates = [*(candidate.settings for candidate in again), *fresh][:CANDIDATES]
        if len(candidates) < FEWEST_IN_RACE - 1:
            return None
        variants = {DEFAULT: self.variant}
        for number, settings in enumerate(candidates, start=1):
            variants[f"settings {number}"] = self.variant.with_settings(settings)
        return asked.replace(
            title=f"{self.name}, batch {len(self.batches) + 1}",
            question="Which of these settings are better than the default?",
            variants=variants,
            asks=HalvingSettings(),
        ).with_measure(budget_s=ROUND_BUDGET_S)

    def summary(self) -> TunedVariant:
        """Return what was done and found, as it is kept with the final run."""
        tried, best = self.tried_settings, best_of(self.tried_settings)
        steps = []
        for number in range(1, len(self.batches) + 1):
            batches = self.batches[:number]
            best_then = best_of(_tried_in(batches, self.space))
            gain = exp(best_then.gain) if best_then else 1.0
            steps.append(TuningStep(used_s=sum(map(_took_s, batches)), gain=gain))
        in_rounds = [
            len(set(record.order))
            for folder in self.batches
            for record in folder.records()
            if isinstance(record, RoundRecord)
        ]
        return TunedVariant(
            name=self.name,
            variant=f"{self.name} (tuned)",
            default_variant=f"{self.name} (default)",
            stack=self.variant.stack,
            searched=list(self.space),
            settings=dict(best.settings) if best else {},
            used_s=self.used_s,
            tried=len(tried),
            rounds=len(in_rounds),
            measurements=sum(in_rounds),
            steps=steps,
            shares=shares_of(self.space, tried, seed=0),
        )

    @property
    def is_unfinished(self) -> bool:
        return bool(self.batches) and not rounds_are_over(self.batches[-1].data())

    def finish_batch(self, caller: Caller) -> bool:
        """Measure the rest of an interrupted batch; False when interrupted again."""
        last = self.batches[-1].path
        if measure_on(last, caller, None, MOST_ROUNDS).interrupted:
            return False
        if self.is_unfinished:
            raise OperationError(f"{last} came to no end: its default doesn't run through a round")
        return True

    def measure_batch(self, experiment: Experiment, caller: Caller) -> bool:
        """Measure the next batch; False when interrupted."""
        path, title = self.next_folder, experiment.title
        try:
            batch = measure_again(title, experiment, self.catalogue, path, caller, MOST_ROUNDS)
        finally:
            if (path / HEAD_FILE).exists():
                self.batches.append(RunFolder.open(path))
        outcome, best = "nothing better than the default so far", best_of(self.tried_settings)
        if best is not None:
            settings = best.settings.items()
            words = ", ".join(f"{setting}={shown_value(value)}" for setting, value in settings)
            better = percent(exp(best.gain) - 1)
            outcome = f"best so far, as the search sees it: {better} better with {words}"
        tried = count(len(self.tried_settings), "setting")
        used = duration(round(self.used_s))
        caller.notify(f"{self.name}: {used} used, {tried} tried; {outcome}")
        return not batch.interrupted


def _tried_in(batches: Sequence[RunFolder], space: dict[str, Setting]) -> list[TriedSettings]:
    gains: dict[object, list[float]] = {}
    settings: dict[object, dict[str, SettingValue]] = {}
    for folder in batches:
        (data,) = folder.data().points
        if not data.rounds:
            continue
        gained = gains_on_baseline(data)
        for name, variant in data.experiment.variants.items():
            if name != DEFAULT:
                own = {setting: variant.settings[setting] for setting in space}
                settings[key_of(own)] = own
                gains.setdefault(key_of(own), []).extend(gained.get(name, [BROKEN]))
    return [TriedSettings(own, tuple(gains[key])) for key, own in settings.items()]


def _took_s(folder: RunFolder) -> float:
    return used_s(folder.data())


def final_experiment(
    contenders: Sequence[Contender], tunings: Sequence[TunedVariant], experiment: Experiment
) -> Experiment | None:
    """Make the experiment that judges what was found on fresh rounds; None where nothing was."""
    variants: dict[str, Variant] = {}
    for contender, tuned in zip(contenders, tunings, strict=True):
        variants[tuned.default_variant] = contender.variant
        if tuned.settings:
            variants[tuned.variant] = contender.variant.with_settings(tuned.settings)
    if not any(candidate.settings for candidate in tunings):
        return None
    return experiment.replace(
        title=f"Tuning {' and '.join(contender.name for contender in contenders)}",
        question="What is the tuning of each variant worth?",
        variants=variants,
        asks=settings_class(RANKING)() if len(variants) >= FEWEST_IN_RACE else experiment.asks,
        tuning=list(tunings),
    )


class TuningTimes(NamedTuple):
    """How the time of a tuning is shared out."""

    each_s: float
    final_s: float | None
    """For the comparison of what was found; None: as the experiment has it."""


@dataclass(frozen=True)
class Tuning:
    """One or two systems that are tuned for the same, in a folder that has all batches."""

    folder: Path
    experiment: Experiment
    catalogue: Catalogue
    contenders: Sequence[Contender]
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

        Raise UserError where there is nothing to tune, OperationError where the extra is neither
        there nor wanted.
        """
        provide_extra("tune", "tuning", caller)
        search = {"capacity": {"slo": list(slo)}} if slo else {}
        more = CommandLine(search, {("capacity",): caller.named("--slo")})
        named = [NamedSystem.of(name) for name in ([system, baseline] if baseline else [system])]
        names = variant_names(named)
        asked = asked.without_time()
        both = names if baseline else [*names, f"{names[0]} again"]
        systems = [system, baseline or system]
        name, experiment, known = arrange(systems, asked, catalogue, caller, more, both)
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
        return (self.folder / FINAL / HEAD_FILE).exists()

    def tunings(self) -> list[TunedVariant]:
        return [contender.summary() for contender in self.contenders]

    def times(self, time_s: float | None) -> TuningTimes:
        """Share out a time: three parts for the search of each variant, one for the comparison."""
        if time_s is None:
            return TuningTimes(EACH_S, None if self.is_for_capacity else EACH_S / SEARCHES_PART)
        part_s = time_s / (SEARCHES_PART * len(self.contenders) + 1)
        return TuningTimes(SEARCHES_PART * part_s, part_s)

    def final(self, times: TuningTimes) -> Experiment | None:
        """Return the experiment that judges what was found; None where that is nothing."""
        final = final_experiment(self.contenders, self.tunings(), self.experiment)
        if final is None or times.final_s is None:
            return final
        return final.with_measure(budget_s=times.final_s, max_rounds=FINAL_ROUNDS, patience=1.0)


def search_in_turns(contenders: Sequence[Contender], each_s: float, caller: Caller) -> bool:
    """Measure batches of all in turns until the time of each is used up; False if interrupted."""
    left = list(contenders)
    while going := sorted(
        (contender for contender in left if contender.fits(each_s)),
        key=lambda contender: contender.used_s,
    ):
        contender = going[0]
        try:
            if contender.is_unfinished:
                went_well = contender.finish_batch(caller)
            elif (experiment := contender.next_batch()) is not None:
                went_well = contender.measure_batch(experiment, caller)
            else:
                left.remove(contender)
                continue
            if not went_well:
                return False
        except KeyboardInterrupt:  # before the first round
            return False
    return True
