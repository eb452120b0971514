"""Intervals of means, slopes and percentiles, and tests. All confidence levels are two-sided.

`d` are the log ratios of the rounds. `estimate` makes the interval of their mean; what widens that
of a ratio, and in which order, says `ratio_ci` in `comparison/ratio.py`.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil, exp, floor, log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtr, stdtrit

from webdyno.core.base import Interval
from webdyno.core.format import count, latency
from webdyno.core.histogram import Histogram

Logs = NDArray[np.float64]

HEAVY_TAILED_P = 0.01
FEWEST_FOR_SHAPE = 6
TINY = 1e-24
"""Variance of ratios that are equal but for rounding."""
EXACT_UP_TO = 40
RANDOM_FLIPS = 50_000
FLIPS_AT_ONCE = 1_000
"""As many as fit into a CPU's cache."""
LARGEST_LOG = 600.0
"""Of a ratio; beyond it records are damaged or nothing bounds it, and floats soon at their end."""

CONFIDENCE = 0.95
FAR_SDS = 10.0
"""Standard deviations from its mean within which a binomial count lies at any confidence asked."""


def within_floats(d: Logs) -> Logs:
    """Hold log ratios to what exp can give."""
    return d.clip(-LARGEST_LOG, LARGEST_LOG)


@dataclass(frozen=True)
class Estimate:
    """An interval of the mean (or median) log ratio."""

    low: float
    centre: float
    high: float
    method: Literal["t", "hodges-lehmann"]

    @property
    def half_width(self) -> float:
        """The farther end's distance from the centre."""
        return max(self.high - self.centre, self.centre - self.low)

    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def noise(self) -> float:
        """How far apart two equal variants may come out."""
        if self.excludes_zero():
            return max(abs(self.low), abs(self.high))
        return self.half_width

    def ratio(self, confidence: float) -> Interval:
        """Return the interval of what these are logarithms of."""
        ends = (self.low, self.centre, self.high)
        low, centre, high = (exp(min(max(end, -LARGEST_LOG), LARGEST_LOG)) for end in ends)
        return Interval(low=low, estimate=centre, high=high, confidence=confidence)

    def widen(self, factor: float) -> "Estimate":
        """Move both ends away from the centre."""
        low = self.centre - factor * (self.centre - self.low)
        high = self.centre + factor * (self.high - self.centre)
        return Estimate(low, self.centre, high, self.method)


def estimate(d: Logs, confidence: float) -> Estimate:
    """Return the t interval of the mean, or where d is heavy-tailed the Hodges-Lehmann interval.

    Needs two values. Hodges-Lehmann needs as many as make the confidence level attainable (six for
    95%); with fewer the t interval is kept.
    """
    if 0.5 ** (len(d) - 1) <= 1 - confidence and heavy_tailed(d):
        return hodges_lehmann(d, confidence)
    centre = float(d.mean())
    half = t_half_width(len(d), float(d.std(ddof=1)), confidence)
    return Estimate(centre - half, centre, centre + half, "t")


def mean_interval(values: Logs, confidence: float) -> Interval:
    """Return the interval of the mean of values that are no logarithms."""
    mean = estimate(values, confidence)
    return Interval(low=mean.low, estimate=mean.centre, high=mean.high, confidence=confidence)


def t_quantile(n: float, confidence: float) -> float:
    """Student's quantile for the mean of n values, or of as many as count in full."""
    return float(stdtrit(n - 1, (1 + confidence) / 2))


def t_half_width(n: float, sd: float, confidence: float) -> float:
    """Return half of the t interval of the mean of n values with this standard deviation."""
    return t_quantile(n, confidence) * sd / sqrt(n)


def t_reach(n: int, sd: float, risk: float) -> float:
    """Return how far such a mean lies from the truth, but for this risk, to one side."""
    return float(stdtrit(n - 1, 1 - risk)) * sd / sqrt(n)


def welch(a: Logs, b: Logs, confidence: float) -> Estimate:
    """Return the interval of mean(a) - mean(b) for two independent samples of two values or more.

    Welch, "The generalization of 'Student's' problem", Biometrika 1947.
    """
    centre = float(a.mean() - b.mean())
    parts = np.array([float(x.var(ddof=1)) / len(x) for x in (a, b)])
    variance = float(parts.sum())
    if variance <= TINY:
        return Estimate(centre, centre, centre, "t")
    freedom = variance**2 / float((parts**2 / np.array([len(a) - 1, len(b) - 1])).sum())
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * variance**0.5
    return Estimate(centre - half, centre, centre + half, "t")


def heavy_tailed(d: Logs) -> bool:
    """Return whether a few values stand far out: kurtosis too large for a normal distribution.

    Anscombe & Glynn, "Distribution of the kurtosis statistic b2 for normal samples", Biometrika
    1983. `scipy.stats` has it, too, but takes half a second to import, in each run.
    """
    n = len(d)
    if n < FEWEST_FOR_SHAPE:
        return False
    squares = (d - d.mean()) ** 2
    variance = float(squares.sum()) / n
    if variance <= TINY:
        return False
    kurtosis = float(squares @ squares) / n / variance**2
    usual = 3 * (n - 1) / (n + 1)
    if kurtosis <= usual:
        return False
    spread = (24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))) ** 0.5
    skewness = 6 * (n**2 - 5 * n + 2) / ((n + 7) * (n + 9))
    skewness *= (6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3))) ** 0.5
    freedom = 6 + 8 / skewness * (2 / skewness + (1 + 4 / skewness**2) ** 0.5)
    stretched = 1 + (kurtosis - usual) / spread * (2 / (freedom - 4)) ** 0.5
    root = np.cbrt((1 - 2 / freedom) / stretched)
    z = (1 - 2 / (9 * freedom) - root) / (2 / (9 * freedom)) ** 0.5
    return bool(ndtr(-z) < HEAVY_TAILED_P)


def hodges_lehmann(d: Logs, confidence: float) -> Estimate:
    """Median of all pairwise means, with the exact interval of Wilcoxon's signed-rank test.

    Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3rd edition, section 3.3.
    """
    rows, columns = np.triu_indices(len(d))
    walsh = np.sort((d[rows] + d[columns]) / 2)
    skip = _signed_rank_skip(len(d), confidence)
    low, high = float(walsh[skip]), float(walsh[-1 - skip])
    return Estimate(low, float(np.median(walsh)), high, "hodges-lehmann")


@cache
def _signed_rank_skip(n: int, confidence: float) -> int:
    """How many of the sorted pairwise means lie outside the interval at each end."""
    ways = np.ones(1)
    for rank in range(1, n + 1):
        with_rank = np.concatenate([np.zeros(rank), ways])
        with_rank[: len(ways)] += ways
        ways = with_rank / 2
    beyond = np.cumsum(ways) <= (1 - confidence) / 2
    return max(int(beyond.sum()) - 1, 0)


def sign_flip_p(d: Logs) -> float:
    """Two-sided p of "the ratio is 1": under it, each round's log ratio might have either sign.

    Exact up to 40 rounds: the sums of both halves' sign patterns are listed and matched, 2^20
    each at most. Beyond that, 50 000 random patterns from a fixed seed.
    Fisher, "The Design of Experiments" (1935), section 21.
    """
    observed = abs(float(d.sum()))
    tolerance = 1e-9 * float(np.abs(d).sum())
    if observed <= tolerance:
        return 1.0
    if len(d) > EXACT_UP_TO:
        as_far = 0
        for flips in _random_flips(len(d)):
            signs = 2.0 * np.unpackbits(flips, axis=1, count=len(d)).astype(np.float64) - 1.0
            as_far += int(np.count_nonzero(np.abs(signs @ d) >= observed - tolerance))
        return (as_far + 1) / (RANDOM_FLIPS + 1)
    middle = len(d) // 2
    first, second = _signed_sums(d[:middle]), _signed_sums(d[middle:])
    below = np.searchsorted(second, observed - tolerance - first)
    one_side = int((len(second) - below).sum())
    return min(1.0, 2.0 * one_side / 2.0 ** len(d))


@lru_cache(maxsize=2)
def _random_flips(n: int) -> list[NDArray[np.uint8]]:
    """Draw sign patterns for n rounds, some rows at a time, with a bit for each sign."""
    rng, signs = np.random.default_rng(0), np.array([-1, 1], np.int8)
    return [
        np.packbits(rng.choice(signs, (FLIPS_AT_ONCE, n)) > 0, axis=1)
        for _ in range(RANDOM_FLIPS // FLIPS_AT_ONCE)
    ]


def _signed_sums(d: Logs) -> Logs:
    sums = np.zeros(1)
    for value in d:
        # Both halves are in order: a stable sort just merges them.
        sums = np.sort(np.concatenate([sums - value, sums + value]), kind="stable")
    return sums


class FittedLine(NamedTuple):
    """A straight line fitted by least squares, by its slope."""

    slope: float
    error: float
    """The slope's standard error, by the scatter around the line; 0 where two points make it."""
    freedom: int

    def half_width(self, confidence: float) -> float:
        """Return half of the slope's interval, by Student's t."""
        return float(stdtrit(self.freedom, (1 + confidence) / 2)) * self.error

    def interval(self, confidence: float) -> Interval:
        """Return the slope with its interval."""
        half = self.half_width(confidence)
        low, high = self.slope - half, self.slope + half
        return Interval(low=low, estimate=self.slope, high=high, confidence=confidence)


def fitted_line(axis: Logs, values: Logs) -> FittedLine:
    """Fit a straight line to values along an axis."""
    away = axis - axis.mean()
    spread = max(float(away @ away), TINY)
    slope = float(away @ values) / spread
    rest = values - values.mean() - slope * away
    freedom = len(values) - 2
    error = (float(rest @ rest) / freedom / spread) ** 0.5 if freedom > 0 else 0.0
    return FittedLine(slope, error, freedom)


def intervals_of(
    means: Logs, interference: tuple[float, float], confidence: float
) -> tuple[Estimate, Estimate]:
    """Return the interval of the mean over machines, and that of one more machine."""
    centre, k = float(means.mean()), len(means)
    reach = t_quantile(k, confidence) * float(means.std(ddof=1))
    down, up = interference

    def around(half: float) -> Estimate:
        return Estimate(centre - half - down, centre, centre + half + up, "t")

    return around(reach / sqrt(k)), around(reach * sqrt(1 + 1 / k))


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
        """What the responses show of the quantile, in words."""
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
    """Return the interval of a quantile, 0 < quantile < 1; None when nothing was counted.

    The k-th smallest of n independent times lies below the q-quantile with the probability of at
    least k successes in n trials of q, so two order statistics enclose the quantile with a known
    confidence, whatever the distribution (Hahn & Meeker, "Statistical Intervals", section 5.2;
    David & Nagaraja, "Order Statistics", 7.1): each side has half of the risk. Ends are the outer
    edges of their buckets. Responses of one round share a server's fresh start and follow each
    other, so this is the uncertainty within the round; that between rounds comes on top.
    """
    n, estimate = times.total, times.quantile(quantile)
    if estimate is None:
        return None
    low, high = _ranks(n, quantile, confidence)
    too_high = 0.0 if low is None else float(bdtr(low - 1, n, quantile))
    too_low = 0.0 if high is None else 1 - float(bdtr(high - 1, n, quantile))
    reached = np.cumsum(times.counts)
    lower, upper = times.low, times.low + times.width
    return QuantileInterval(
        low=None if low is None else float(lower[np.searchsorted(reached, low)]),
        estimate=estimate,
        high=None if high is None else float(upper[np.searchsorted(reached, high)]),
        confidence=1 - too_high - too_low,
        responses=n,
        quantile=quantile,
    )


def exceeded_by_largest(quantile: float, confidence: float = CONFIDENCE) -> int:
    """Return after how many responses the largest exceeds the quantile (binomial): 299 for p99."""
    return ceil(log(1 - confidence) / log(quantile))


@cache
def responses_for_interval(quantile: float, confidence: float = CONFIDENCE) -> int:
    """Return how many responses it takes until both ends of the interval are known: 368 for p99."""
    tail = max(quantile, 1 - quantile)
    return ceil(log((1 - confidence) / 2) / log(tail))


@cache
def _ranks(n: int, quantile: float, confidence: float) -> tuple[int | None, int | None]:
    """Return the ranks, from 1, of the order statistics that enclose the quantile.

    B ~ Bin(n, quantile) times lie below the quantile. The k-th smallest lies above it when B < k.
    """
    risk = (1 - confidence) / 2
    middle, reach = n * quantile, FAR_SDS * (n * quantile * (1 - quantile)) ** 0.5 + FAR_SDS
    first = max(floor(middle - reach), 0)  # nearly nothing is beyond, and n may be a million
    below = bdtr(np.arange(first, min(ceil(middle + reach), n) + 1, dtype=float), n, quantile)
    low = first + int(np.count_nonzero(below <= risk))  # the k-th is too high when B <= k - 1
    high = first + int(np.searchsorted(below, 1 - risk)) + 1  # the k-th is too low when B >= k
    return (low if low >= 1 else None), (high if high <= n else None)
