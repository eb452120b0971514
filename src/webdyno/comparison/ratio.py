"""How the confidence interval of a ratio of two variants is made, and when it is narrow enough."""

from math import log, log1p
from typing import NamedTuple

from webdyno.core.base import Interval
from webdyno.core.measure import Measure
from webdyno.core.metrics import THROUGHPUT, MetricRule
from webdyno.evidence.log_ratios import (
    LogRatios,
    log_ratios,
    ratio_widened_by_resolution,
    widened_by_later,
)
from webdyno.evidence.noise import apart_alone, by_own_cpu
from webdyno.evidence.point_data import PointData
from webdyno.statistics.bounds import Bound, with_bound
from webdyno.statistics.interval import Estimate, Logs, estimate

SEQUENTIAL_FACTOR = 1.08
"""Widening of intervals that are narrow enough to stop at. A run that stops when its interval looks
narrow stops rather too early; without this, 95% intervals cover the truth in 92.5% of runs at the
worst noise (docs/validation/method.md, "Stop rule")."""
RELATIVE_PRECISION = 1 / 8
"""Share of a difference (ln) that its interval may span to each side: 3.4 to 4.8 around 4.0."""
KNOWN_TO, KNOWN_TO_SHARE = 0.025, 0.25
"""To how much, or what share of the difference (ln), a ratio has to be known, lest a run takes
longer than its budget: equal variants are then known to differ by 5% at most."""
LARGE = log(1.5)
"""A difference (ln) from which on a ratio that is known to such a share can be known promptly."""
WORTH_REPORTING_APART = 0.005
"""By so much (ln) a ratio may be another one on a machine alone for that to be shown."""


class RatioCI(NamedTuple):
    """The confidence intervals of the logarithm of a ratio."""

    sampling: Estimate
    worst_case: Estimate


def ratio_ci(
    data: PointData,
    ratios: LogRatios,
    baseline: str,
    rule: MetricRule,
    *,
    measure: Measure,
    bound: Bound,
    confidence: float,
) -> RatioCI | None:
    """Return the intervals of a variant's ratio to the baseline; None with fewer than two rounds.

    The interval of the mean over rounds (`estimate`) is widened in this order: where a run may stop
    because it is narrow; by how well long looks show what comes later; by how finely a search finds
    a capacity. That is the sampling CI. The bias bound widens it once more, to the worst-case CI.
    """
    if len(ratios.d) < 2:
        return None
    between = (data, ratios.variant, baseline, rule)
    stopped_at, _ = shown_estimate(ratios.d, measure, confidence)
    sampling = ratio_widened_by_resolution(widened_by_later(stopped_at, *between), *between)
    return RatioCI(sampling, with_bound(sampling, bound))


def shown_estimate(d: Logs, measure: Measure, confidence: float) -> tuple[Estimate, bool]:
    """Return the estimate, wider where a run may stop for its width, and whether it may."""
    raw = estimate(d, confidence)
    wide = raw.widen(SEQUENTIAL_FACTOR) if len(d) > measure.min_rounds else raw
    precise = wide.half_width <= wanted_half_width(wide.centre, measure)
    return (wide if precise or _is_known(wide) else raw), precise


def wanted_half_width(centre: float, measure: Measure) -> float:
    """Return how narrow (ln) an interval around that ratio (ln) has to be for a run to stop."""
    return max(log1p(measure.precision), RELATIVE_PRECISION * abs(centre))


def too_noisy(d: Logs, confidence: float) -> bool:
    """Whether a ratio is known neither to 2.5% nor to a quarter of the difference."""
    return not _is_known(estimate(d, confidence).widen(SEQUENTIAL_FACTOR))


def is_large_and_known(d: Logs, confidence: float) -> bool:
    """Whether a difference is beyond 1.5× and its ratio known to a quarter of it."""
    return abs(estimate(d, confidence).centre) >= LARGE and not too_noisy(d, confidence)


def _is_known(ratio: Estimate) -> bool:
    return ratio.half_width <= max(log1p(KNOWN_TO), KNOWN_TO_SHARE * abs(ratio.centre))


def alone(
    data: PointData,
    variant: str,
    baseline: str,
    rule: MetricRule,
    here: Estimate,
    confidence: float,
) -> Interval | None:
    """Return the interval on a machine without others' work; None where it is the one found here.

    One of two busy programs may have got less of the CPUs, such as one process next to many
    threads: by their own CPU time that makes no difference.
    """
    apart = apart_alone(data, variant, baseline)
    if apart < WORTH_REPORTING_APART:
        return None
    own = by_own_cpu(data) if rule.name == THROUGHPUT else None
    low, high = here.low, here.high
    if own is not None:
        (pair,) = log_ratios({name: own.values[name] for name in (baseline, variant)})
        if len(pair.d) > 1:
            by_cpu = estimate(pair.d, confidence)
            low, high = min(low, by_cpu.low), max(high, by_cpu.high)
    both = Estimate(low, here.centre, high, here.method)
    return with_bound(both, Bound("others", down=apart, up=apart)).ratio(confidence)
