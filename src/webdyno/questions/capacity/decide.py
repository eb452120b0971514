"""How much a single variant can take."""

from math import log1p

import numpy as np

from webdyno.comparison.capacity_rules import MOST_TAKEN, objective_words
from webdyno.comparison.comparison import ALPHA, variant_value
from webdyno.comparison.question import Question
from webdyno.comparison.ratio import SEQUENTIAL_FACTOR
from webdyno.comparison.stop import Stop, used_up
from webdyno.core.format import count, number, percent, quantity_bounds, upper_first
from webdyno.core.judgement import Judgement, Verdict
from webdyno.core.metrics import CAPACITY, METRICS
from webdyno.evidence.log_ratios import widened_by_resolution
from webdyno.evidence.noise import taken_share
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import estimate
from webdyno.validity import valid_for
from webdyno.validity.client import client_was_the_limit


class AloneQuestion(Question):
    """What one variant can take, with nothing to compare that with."""

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
        """Return how well the capacity is known, where that is well enough to stop."""
        (variant,) = data.experiment.variants
        rule, measure = METRICS[CAPACITY], data.measure
        values = list(data.values(variant, rule).values())
        if len(values) < max(measure.min_rounds, 2):
            return None
        # Its interval may have been waited for, as those of ratios are.
        known = estimate(np.log(values), 1 - ALPHA).widen(SEQUENTIAL_FACTOR)
        known = widened_by_resolution(known, data, variant, rule)
        if known.half_width > log1p(measure.precision):
            return None
        return f"the capacity is known to ±{percent(measure.precision)}"

    def judge(self, data: PointData) -> Judgement:
        """Return what the variant can take, or why that isn't known."""
        judged = super().judge(data)
        verdict, words = _verdict_and_words(data, judged)
        return judged.replace(verdict=verdict, headline=words)

    def so_far(self, data: PointData) -> str:
        """Return the capacity so far, with its interval from the second round on."""
        (variant,) = data.experiment.variants
        value = variant_value(data, variant, METRICS[CAPACITY])
        if value.interval is None:
            known = number(value.by_round[0]) if value.by_round else "not known yet"
            return f"capacity {known} (first CI after round 2)"
        return f"capacity {number(value.interval.estimate)} ({quantity_bounds(value.interval)})"


def _verdict_and_words(data: PointData, judged: Judgement) -> tuple[Verdict, str]:
    (variant,) = data.experiment.variants
    for warning in judged.warnings:
        if warning.invalidates(CAPACITY, (variant, variant)):
            return Verdict.INVALID, f"{upper_first(warning.what)}."
    value = next(value for value in judged.variants if value.metric == CAPACITY)
    if not value.by_round:
        return Verdict.INCOMPLETE, f"no round found a capacity of {variant}"
    rounds, least = count(len(value.by_round), "round"), data.measure.min_rounds
    known = f"{number(value.interval.estimate if value.interval else value.by_round[0])} req/s"
    if value.interval:
        known += f" (95% CI {quantity_bounds(value.interval)})"
    if len(value.by_round) < least or value.interval is None:
        why = f"{rounds} so far, {least} are needed"
        return Verdict.INCONCLUSIVE, f"{variant} can take {known}: {why}"
    by_client = client_was_the_limit(data, variant)
    is_bound = by_client or any(full.is_lower_bound for full in judged.saturation)
    limit = ", where it was client-limited" if by_client else ""
    kept, taken = objective_words(data), taken_share(data.slots)
    if taken > MOST_TAKEN:
        others = f"others took {percent(taken)} of the servers' CPUs"
        here = f"{variant} can take at least {number(value.interval.low)} req/s here"
        return Verdict.INCONCLUSIVE, f"{others}; {here} with {kept}, {rounds}"
    least_words = "at least " if is_bound else ""
    return Verdict.MEASURED, f"{variant} can take {least_words}{known} with {kept}{limit}, {rounds}"
