"""Variants against the baseline, round by round, with what happens only later counted in.

Slots show a variant between its stalls. Over a long time a closed loop's throughput is lower by the
share of the time that stalls take, and an open loop's percentiles are those of the whole stretch.
What drifts has no one value: how far it moved bounds how far what was measured may be off.

Rounds show how far searches for a capacity scatter. By how much all of them find too much they
don't show: each search says about how much that is (`core/capacity.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, inf, log, log1p
from statistics import fmean
from typing import NamedTuple

import numpy as np

from webdyno.core.capacity import capacity_estimate
from webdyno.core.histogram import Histogram, merge_encoded
from webdyno.core.looks import Drift, LongLook
from webdyno.core.metrics import THROUGHPUT, MetricRule, latency_of
from webdyno.evidence.long_look import stall_words
from webdyno.evidence.noise import Values, judged_values
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.evidence.slot_stalls import holds_stall
from webdyno.statistics.bounds import Bound, with_bound
from webdyno.statistics.interval import LARGEST_LOG, Estimate, Logs, within_floats

SLOTS_BETWEEN = 3
"""Stalls are rare where there is room for so many slots from one to the next: most hold none."""
MOST_HOLDING = 0.5
"""Share of a variant's slots that may hold a stall which is rare."""


@dataclass(frozen=True)
class LogRatios:
    """ln(variant / baseline) in each round in which both have a value."""

    variant: str
    rounds: list[int]
    d: Logs


def log_ratios(values: Mapping[str, Values]) -> list[LogRatios]:
    """Pair each variant with the baseline, which is the first one, round by round."""
    baseline, *others = values
    return [_pair(variant, values[variant], values[baseline]) for variant in others]


@dataclass(frozen=True)
class Pair(LogRatios):
    """The log ratios with the values that they are of."""

    a: Values
    b: Values


def pair_of(data: PointData, variant: str, baseline: str, rule: MetricRule) -> Pair:
    """Pair a variant with the baseline on a metric by round, with what happens later counted in."""
    a, b = judged_values(data, variant, rule), judged_values(data, baseline, rule)
    pair = _pair(variant, a, b)
    later = shift(data, variant, rule).centre - shift(data, baseline, rule).centre
    return Pair(variant, pair.rounds, within_floats(pair.d + later), a, b)


def _pair(variant: str, a: Values, b: Values) -> LogRatios:
    rounds = sorted(a.keys() & b.keys())
    d = np.array([log(a[n]) - log(b[n]) for n in rounds])
    return LogRatios(variant, rounds, within_floats(d))


class Shift(NamedTuple):
    """ln of a metric over a long time, relative to what slots show; an estimate with its ends."""

    low: float = 0.0
    centre: float = 0.0
    high: float = 0.0


NONE = Shift()


def widened_by_later(
    ratio: Estimate, data: PointData, a: str, b: str, rule: MetricRule
) -> Estimate:
    """Widen the interval of ln(a / b) by how well it is known what comes later."""
    return widened_by_both(ratio, shift(data, a, rule), shift(data, b, rule))


def widened_by_both(ratio: Estimate, mine: Shift, theirs: Shift) -> Estimate:
    """Widen the interval of a log ratio by a shift of either variant, the baseline's last."""
    turned = Shift(-theirs.high, -theirs.centre, -theirs.low)
    return widened_by(widened_by(ratio, mine), turned)


def widened_by(ratio: Estimate, later: Shift) -> Estimate:
    """Widen an interval that has a shift in it: independent uncertainties add up in quadrature."""
    if later == NONE:
        return ratio
    down = hypot(ratio.centre - ratio.low, later.centre - later.low)
    up = hypot(ratio.high - ratio.centre, later.high - later.centre)
    return Estimate(
        low=max(ratio.centre - down, -LARGEST_LOG),
        centre=ratio.centre,
        high=min(ratio.centre + up, LARGEST_LOG),
        method=ratio.method,
    )


def shift(data: PointData, variant: str, rule: MetricRule) -> Shift:
    """Return how a metric of a variant differs over a long time from what its slots show."""
    look = look_of(data, variant)
    if look is None or look.stalls is None or not counts_apart(data, variant):
        return NONE
    loops = {slot.load.loop for slot in data.of_variant(variant)}
    if rule.name == THROUGHPUT and loops == {"closed"}:
        share = look.stalls.share
        return Shift(_left(share.high), _left(share.estimate), _left(share.low))
    if rule.times_of is latency_of and loops == {"open"} and rule.quantile is not None:
        return _percentile_shift(data, look, rule)
    return NONE


def times_of_look(data: PointData, variant: str, rule: MetricRule) -> Histogram | None:
    """Return the latency of a long look whose percentile counts in place of the slots'."""
    look = look_of(data, variant)
    counts = rule.quantile is not None and shift(data, variant, rule) != NONE
    return merge_encoded([look.times]) if look and counts else None


@compute_once
def counts_apart(data: PointData, variant: str) -> bool:
    """Whether stalls are rarer than slots; slots have their share of what comes more often.

    They are more often, too, where most slots hold one: without those nothing would be left.
    """
    look, slots = look_of(data, variant), data.of_variant(variant)
    if look is None or look.stalls is None or not slots:
        return False
    length_s = look.stalls.length_s
    every_s = length_s / look.stalls.share.estimate
    if every_s < SLOTS_BETWEEN * max(slot.load.measured_s for slot in slots):
        return False
    return sum(holds_stall(slot, length_s) for slot in slots) <= MOST_HOLDING * len(slots)


def look_of(data: PointData, variant: str) -> LongLook | None:
    return next((look for look in data.looks if look.variant == variant), None)


def _left(share: float) -> float:
    return log1p(-share) if share < 1 else -LARGEST_LOG


def _percentile_shift(data: PointData, look: LongLook, rule: MetricRule) -> Shift:
    """Compare the percentile of the whole stretch with that of slots.

    Requests come in stalls as often as stalls have of the time. Were that share another one, so
    would be the quantile that is read: for a share twice as large, that with half as much above.
    """
    values, times = data.values(look.variant, rule), merge_encoded([look.times])
    if not values or look.stalls is None or rule.quantile is None:
        return NONE
    usual = sum(map(log, values.values())) / len(values)
    share, above = look.stalls.share, 1 - rule.quantile
    ends = []
    for assumed in (share.low, share.estimate, share.high):
        wanted_share = 1 - above * share.estimate / assumed if assumed > 0 else 0.0
        value = times.quantile(wanted_share) if wanted_share > 0 else None
        ends.append(max(log(value) - usual, 0.0) if value else 0.0)
    return Shift(*ends)


def later_bounds(data: PointData, variant: str, rule: MetricRule) -> list[Bound]:
    """Bound a metric by what the long look saw.

    What drifted may stay at either level; slots may have missed what was slow; a capacity at which
    the objectives don't hold for longer lies below, nobody knows how far.
    """
    look = look_of(data, variant)
    if look is None:
        return []
    if rule.kind == "capacity" and look.trial and not look.trial.holds:
        return [Bound("not-confirmed", up=inf)]
    bounds = [_bound(drift) for drift in look.drifts if drift.metric == rule.name]
    if look.slow and rule.name == THROUGHPUT:
        lost = look.slow.stretches.share.estimate * (1 - look.slow.level)
        bounds.append(Bound("slow-stretches", up=-log1p(-lost)))
    return bounds


def _bound(drift: Drift) -> Bound:
    low, high = log(drift.change.low), log(drift.change.high)
    return Bound("drift", down=max(high, 0.0), up=max(-low, 0.0))


def later_words(data: PointData, a: str, b: str, rule: MetricRule) -> str | None:
    """Describe what of a ratio comes from what only happens later; None where nothing does."""
    words = [
        f"with {stall_words(look)} of {variant} counted in"
        for variant in (a, b)
        if shift(data, variant, rule) != NONE and (look := look_of(data, variant))
    ]
    return " and ".join(words) or None


def resolution(data: PointData, variant: str, rule: MetricRule) -> float:
    """Return how far (ln) below what the searches found of a variant its capacity may lie."""
    if rule.kind != "capacity":
        return 0.0
    capacities = (
        capacity_estimate([slot.trial for slot in this_round.of(variant) if slot.trial])
        for this_round in data.rounds
    )
    return fmean([capacity.bias for capacity in capacities if capacity] or [0.0])


def widened_by_resolution(
    capacity: Estimate, data: PointData, variant: str, rule: MetricRule
) -> Estimate:
    """Widen the interval of a variant's capacity: all of its searches find too much together."""
    return with_bound(capacity, Bound("resolution", up=resolution(data, variant, rule)))


def ratio_widened_by_resolution(
    ratio: Estimate, data: PointData, a: str, b: str, rule: MetricRule
) -> Estimate:
    """Widen the interval of ln(a / b): what both find too much is as large by chance only."""
    mine, theirs = resolution(data, a, rule), resolution(data, b, rule)
    return widened_by_both(ratio, Shift(low=-mine), Shift(low=-theirs))
