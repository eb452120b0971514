"""Arms against the baseline, block by block."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from webdyno.judge.interval import Logs, within_floats
from webdyno.judge.later import shift
from webdyno.judge.point_data import PointData
from webdyno.model.metrics import MetricRule

Values = Mapping[int, float]
"""A metric of an arm by block number."""


@dataclass(frozen=True)
class LogRatios:
    """ln(arm / baseline) in each block in which both have a value."""

    arm: str
    blocks: list[int]
    d: Logs


def log_ratios(values: Mapping[str, Values]) -> list[LogRatios]:
    """Pair each arm with the baseline, which is the first one, block by block."""
    baseline, *others = values
    return [_pair(arm, values[arm], values[baseline]) for arm in others]


@dataclass(frozen=True)
class Pair(LogRatios):
    """The log ratios with the values that they are of."""

    a: Values
    b: Values


def pair_of(data: PointData, arm: str, baseline: str, rule: MetricRule) -> Pair:
    """Pair an arm with the baseline on a metric, block by block.

    What happens later is counted in, by the estimate of what it comes to.
    """
    a, b = data.values(arm, rule), data.values(baseline, rule)
    found = _pair(arm, a, b)
    later = shift(data, arm, rule).centre - shift(data, baseline, rule).centre
    return Pair(arm, found.blocks, within_floats(found.d + later), a, b)


def _pair(arm: str, a: Values, b: Values) -> LogRatios:
    blocks = sorted(a.keys() & b.keys())
    d = np.array([log(a[n]) - log(b[n]) for n in blocks])
    return LogRatios(arm, blocks, within_floats(d))
