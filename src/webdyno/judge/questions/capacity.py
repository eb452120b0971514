"""How much variants can take, or a single one of them: a search for the capacity.

Whatever else is asked, an experiment may look for capacities instead of measuring in slots.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log1p
from statistics import geometric_mean
from typing import ClassVar

import numpy as np

from webdyno.judge.comparison import ALPHA, SEQUENTIAL_FACTOR, variant_value
from webdyno.judge.interval import estimate
from webdyno.judge.point_data import PointData
from webdyno.judge.questions.capacity_rules import OWN_RULES, broken_by_stalls, objective_words
from webdyno.judge.questions.compare import Loading, Question
from webdyno.judge.resolution import widened_by_resolution
from webdyno.judge.stop import Stop, used_up
from webdyno.judge.validity import FIRST_RULES, run, valid_for
from webdyno.judge.validity.client import client_was_the_limit
from webdyno.judge.validity.rule import Rule
from webdyno.model.base import Interval
from webdyno.model.capacity import MOST_DECIDING, CapacitySettings
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, number, percent, quantity_bounds, upper_first
from webdyno.model.judgement import Judgement, Verdict
from webdyno.model.metrics import CAPACITY, METRICS
from webdyno.model.records import LongLookRecord, SlotRecord

CONFIRMED_S = 30.0
"""So long the objectives have to hold just below a capacity that was found."""
CONFIRMED_SHARE = 0.95
"""Of a capacity that was found: intervals of it are some per cent wide."""
NARROWING, FIRST_NARROWING, DECIDING_TRIAL = 2.5, 4.0, 1.4
"""What a search takes until its deciding trials begin, where rounds before it tell where to begin
and where none do, and what each of these takes, ramp-up and rests included; in their lengths."""
BEYOND_S = 10.0
"""What one overload takes, with its last responses and the load after it."""
FEWEST_STALLED = 2
"""Trials of a search that stalls failed, from which on a variant may have no capacity at all."""


@dataclass(frozen=True)
class CapacitySearch(Loading):
    """Variants that are loaded in trials, at rates that a search chooses."""

    settings: CapacitySettings

    shows: ClassVar[str] = "capacity"
    has_windows: ClassVar[bool] = False
    look_s: ClassVar[float] = CONFIRMED_S

    def rules(self) -> tuple[Rule, ...]:
        """Give those of trials, which ask for too much by intent."""
        return (*FIRST_RULES, *OWN_RULES, run.FEW_ROUNDS)

    def working_variants(self, data: PointData) -> Collection[str]:
        """Name the variants of which a capacity was found."""
        rule = METRICS[data.measure.decide_on]
        return {variant for variant in data.experiment.variants if data.values(variant, rule)}

    def rounds_s(self, rounds: int, variants: int, left_s: float) -> float | None:
        """Give how long searches take in so many rounds, which have so much time."""
        deciding = deciding_trials(self.settings, left_s / (rounds * variants))
        narrowing = FIRST_NARROWING + (rounds - 1) * NARROWING
        lengths = narrowing + rounds * deciding * DECIDING_TRIAL
        return variants * lengths * self.settings.deciding_s

    def look_rate_rps(self, data: PointData, variant: str) -> float | None:
        """Give a rate just below the capacity that the rounds found of a variant, if any.

        There the objectives have to hold for longer.
        """
        found_rps = known_rps(data, variant)
        return CONFIRMED_SHARE * found_rps if found_rps else None

    def can_look_at(self, data: PointData, variant: str) -> bool:
        """Whether a capacity was found."""
        return known_rps(data, variant) is not None

    def doubtful(self, data: PointData) -> Collection[str]:
        """Name the variants whose last search met with stalls, and which had no long look yet."""
        looked = {record.variant for record in data.records if isinstance(record, LongLookRecord)}
        return [
            variant
            for variant in data.experiment.variants
            if variant not in looked
            and self.can_look_at(data, variant)
            and sum(map(_is_stalled, data.rounds[-1].of(variant))) >= FEWEST_STALLED
        ]

    def refuted(self, data: PointData) -> Collection[str]:
        """Name the variants whose stalls leave no capacity, however few rounds there were."""
        return {look.variant for look in data.looks if broken_by_stalls(data, look)}


def _is_stalled(slot: SlotRecord) -> bool:
    """Whether a trial failed, and the servers stalled in it."""
    trial = slot.trial
    return trial is not None and trial.stalled_s > 0 and not trial.holds and not trial.times


def known_rps(data: PointData, variant: str) -> float | None:
    """Give the capacity that the rounds so far found of a variant; None before they have."""
    rates = data.values(variant, METRICS[CAPACITY]).values()
    return geometric_mean(rates) if rates else None


def deciding_trials(settings: CapacitySettings, search_s: float) -> int:
    """Give how many trials of full length a search can have that has so much time."""
    fitting = (search_s / settings.deciding_s - NARROWING) / DECIDING_TRIAL
    return min(max(int(fitting), 1), MOST_DECIDING)


def has_time_beyond(settings: CapacitySettings, search_s: float) -> bool:
    """Whether a search that has so much time leaves enough of it to ask for more."""
    whole_s = settings.deciding_s * (NARROWING + MOST_DECIDING * DECIDING_TRIAL)
    return bool(settings.overloads) and search_s >= whole_s + BEYOND_S


class AloneQuestion(Question):
    """What one variant can take, with nothing to compare that with."""

    @classmethod
    def is_asked(cls, experiment: Experiment) -> bool:
        """Whether there is one variant only."""
        return len(experiment.variants) == 1

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Stop where the capacity is known well enough, or time is used up."""
        if stop := self.nothing_to_show(data):
            return stop
        valid = valid_for(data, data.measure.decide_on)
        if len(valid.rounds) < valid.measure.min_rounds:
            return None
        if known := self._how_well(valid):
            return Stop("precision", known)
        return used_up(valid, valid.measure, elapsed_s + self.reserved_s(data))

    def _how_well(self, data: PointData) -> str | None:
        """Say how well the capacity is known, where that is well enough to stop."""
        (variant,) = data.experiment.variants
        rule, measure = METRICS[CAPACITY], data.measure
        values = list(data.values(variant, rule).values())
        if len(values) < max(measure.min_rounds, 2):
            return None
        # Its interval may have been waited for, as those of ratios are.
        known = estimate(np.log(values), 1 - ALPHA).widened(SEQUENTIAL_FACTOR)
        known = widened_by_resolution(known, data, variant, rule)
        if known.half_width > log1p(measure.precision):
            return None
        return f"the capacity is known to ±{percent(measure.precision)}"

    def judge(self, data: PointData) -> Judgement:
        """Say what the variant can take, or why that isn't known."""
        judged = super().judge(data)
        verdict, words = _response(data, judged)
        return judged.replace(verdict=verdict, headline=words)

    def so_far(self, data: PointData) -> str:
        """Give the capacity so far, with its interval from the second round on."""
        (variant,) = data.experiment.variants
        value = variant_value(data, variant, METRICS[CAPACITY])
        if value.interval is None:
            known = number(value.by_round[0]) if value.by_round else "not known yet"
            return f"capacity {known} (first CI after round 2)"
        return f"capacity {number(value.interval.estimate)} ({quantity_bounds(value.interval)})"


def _response(data: PointData, judged: Judgement) -> tuple[Verdict, str]:
    """Say what the only variant can take, or why that isn't known."""
    (variant,) = data.experiment.variants
    for warning in judged.warnings:
        if warning.invalidates(CAPACITY, (variant, variant)):
            return Verdict.INVALID, f"{upper_first(warning.what)}."
    value = next(value for value in judged.variants if value.metric == CAPACITY)
    if not value.by_round:
        return Verdict.INCOMPLETE, f"no round found a capacity of {variant}"
    rounds, least = count(len(value.by_round), "round"), data.measure.min_rounds
    known = _found(value.interval, value.by_round)
    if len(value.by_round) < least or value.interval is None:
        why = f"{rounds} so far, {least} are needed"
        return Verdict.INCONCLUSIVE, f"{variant} can take {known}: {why}"
    by_client = client_was_the_limit(data, variant)
    is_bound = by_client or any(full.is_lower_bound for full in judged.saturation)
    limit = ", where it was client-limited" if by_client else ""
    words = (
        f"{variant} can take {'at least ' * is_bound}{known} with {objective_words(data)}{limit}"
    )
    return Verdict.MEASURED, f"{words}, {rounds}"


def _found(interval: Interval | None, by_round: Sequence[float]) -> str:
    if interval is None:
        return f"{number(by_round[0])} req/s"
    around = quantity_bounds(interval)
    return f"{number(interval.estimate)} req/s (95% CI {around})"
