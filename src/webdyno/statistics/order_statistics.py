"""Intervals of a percentile from the responses themselves, whatever their distribution.

The k-th smallest of n independent times lies below the q-quantile with the probability of at least
k successes in n trials of q, so two order statistics enclose the quantile with a known confidence
(Hahn & Meeker, "Statistical Intervals", section 5.2; David & Nagaraja, "Order Statistics", 7.1).
Responses of one round share a server's fresh start and follow each other, so this is the
uncertainty within the round; that between rounds comes on top.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, floor, log

import numpy as np
from scipy.special import bdtr

from webdyno.core.format import count, latency
from webdyno.core.histogram import Histogram

CONFIDENCE = 0.95
FAR_SDS = 10.0
"""Standard deviations from its mean within which a binomial count lies at any confidence asked."""


@dataclass(frozen=True)
class QuantileInterval:
    """Where a quantile lies; an end is None where there are too few responses to know it."""

    low: float | None
    estimate: float
    high: float | None
    confidence: float
    """What is certain at least, ends that aren't known taken as 0 and infinity."""
    responses: int
    quantile: float

    @property
    def says(self) -> str:
        """What the responses say of the quantile, for people."""
        name = f"p{self.quantile * 100:g}"
        responses = count(self.responses, "response")
        if self.low is not None and self.high is not None:
            return f"{name} lies between {latency(self.low)} and {latency(self.high)}"
        if self.low is not None:
            return f"{responses} only say that {name} exceeds {latency(self.low)}"
        if self.high is not None:
            return f"{responses} only say that {name} is below {latency(self.high)}"
        return f"{responses}: too few for {name}"


def quantile_interval(
    times: Histogram, quantile: float, confidence: float = CONFIDENCE
) -> QuantileInterval | None:
    """Give the interval of a quantile, 0 < quantile < 1; None when nothing was counted.

    Exact for independent responses: at least the confidence, on each side half of the risk. Ends
    are the outer edges of their buckets.
    """
    n, estimate = times.total, times.quantile(quantile)
    if estimate is None:
        return None
    low, high = _ranks(n, quantile, confidence)
    reached = np.cumsum(times.counts)
    lower, upper = times.low, times.low + times.width
    return QuantileInterval(
        low=None if low is None else float(lower[np.searchsorted(reached, low)]),
        estimate=estimate,
        high=None if high is None else float(upper[np.searchsorted(reached, high)]),
        confidence=_certain(n, quantile, low, high),
        responses=n,
        quantile=quantile,
    )


def exceeded_by_largest(quantile: float, confidence: float = CONFIDENCE) -> int:
    """Give how many responses it takes until the largest exceeds the quantile: 299 for p99.

    The binomial bound: quantile^n at most 1 - confidence. No more than an upper bound.
    """
    return ceil(log(1 - confidence) / log(quantile))


@cache
def responses_for_interval(quantile: float, confidence: float = CONFIDENCE) -> int:
    """Give how many responses it takes until both ends of the interval are known: 368 for p99."""
    tail = max(quantile, 1 - quantile)
    return ceil(log((1 - confidence) / 2) / log(tail))


@cache
def _ranks(n: int, quantile: float, confidence: float) -> tuple[int | None, int | None]:
    """Give the ranks, from 1, of the order statistics that enclose the quantile.

    B ~ Bin(n, quantile) times lie below the quantile. The k-th smallest lies above it when B < k.
    """
    risk = (1 - confidence) / 2
    middle, reach = n * quantile, FAR_SDS * (n * quantile * (1 - quantile)) ** 0.5 + FAR_SDS
    first = max(floor(middle - reach), 0)  # nearly nothing is beyond, and n may be a million
    below = bdtr(np.arange(first, min(ceil(middle + reach), n) + 1, dtype=float), n, quantile)
    low = first + int(np.count_nonzero(below <= risk))  # the k-th is too high when B <= k - 1
    high = first + int(np.searchsorted(below, 1 - risk)) + 1  # the k-th is too low when B >= k
    return (low if low >= 1 else None), (high if high <= n else None)


def _certain(n: int, quantile: float, low: int | None, high: int | None) -> float:
    too_high = 0.0 if low is None else float(bdtr(low - 1, n, quantile))
    too_low = 0.0 if high is None else 1 - float(bdtr(high - 1, n, quantile))
    return 1 - too_high - too_low
