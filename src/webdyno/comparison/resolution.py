"""What searches for a capacity leave open, however often they are repeated.

Rounds show how far searches scatter. What all of them find too much they don't show: each search
says about how much that is (`core/crossing.py`).
"""

from statistics import fmean

from webdyno.core.crossing import capacity_estimate
from webdyno.core.metrics import MetricRule
from webdyno.evidence.log_ratios import Shift, widened_by_both
from webdyno.evidence.point_data import PointData
from webdyno.statistics.bounds import Bound, widened
from webdyno.statistics.interval import Estimate


def resolution(data: PointData, variant: str, rule: MetricRule) -> float:
    """Give how far (ln) below what the searches found of a variant its capacity may lie."""
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
    return widened(capacity, Bound("resolution", up=resolution(data, variant, rule)))


def ratio_widened_by_resolution(
    ratio: Estimate, data: PointData, a: str, b: str, rule: MetricRule
) -> Estimate:
    """Widen the interval of ln(a / b): what both find too much is as large by chance only."""
    mine, theirs = resolution(data, a, rule), resolution(data, b, rule)
    return widened_by_both(ratio, Shift(low=-mine), Shift(low=-theirs))
