"""Intervals and tests on d, the log ratios of the rounds. All confidence levels are two-sided."""

from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from webdyno.core.base import Interval

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
        """Whether "no difference" lies outside the interval."""
        return self.low > 0 or self.high < 0

    @property
    def noise(self) -> float:
        """Of two equal variants: how far from each other they may come out.

        The half-width; where the interval excludes "no difference", its farther end.
        """
        if self.excludes_zero():
            return max(abs(self.low), abs(self.high))
        return self.half_width

    def ratio(self, confidence: float) -> Interval:
        """Give the interval of what these are logarithms of."""
        ends = (self.low, self.centre, self.high)
        low, centre, high = (exp(min(max(end, -LARGEST_LOG), LARGEST_LOG)) for end in ends)
        return Interval(low=low, estimate=centre, high=high, confidence=confidence)

    def widened(self, factor: float) -> "Estimate":
        """Move both ends away from the centre."""
        return Estimate(
            low=self.centre - factor * (self.centre - self.low),
            centre=self.centre,
            high=self.centre + factor * (self.high - self.centre),
            method=self.method,
        )


def estimate(d: Logs, confidence: float) -> Estimate:
    """Give the t interval of the mean, or where d is heavy-tailed the Hodges-Lehmann interval.

    Needs two values. Hodges-Lehmann needs as many as make the confidence level attainable (six for
    95%); with fewer the t interval is kept.
    """
    if 0.5 ** (len(d) - 1) <= 1 - confidence and heavy_tailed(d):
        return hodges_lehmann(d, confidence)
    centre = float(d.mean())
    half = t_quantile(len(d), confidence) * float(d.std(ddof=1)) / len(d) ** 0.5
    return Estimate(centre - half, centre, centre + half, "t")


def mean_interval(values: Logs, confidence: float) -> Interval:
    """Give the interval of the mean of values that are no logarithms."""
    interval = estimate(values, confidence)
    return Interval(
        low=interval.low, estimate=interval.centre, high=interval.high, confidence=confidence
    )


def t_quantile(n: float, confidence: float) -> float:
    """Student's quantile for the mean of n values, or of as many as count in full."""
    return float(stdtrit(n - 1, (1 + confidence) / 2))


def welch(a: Logs, b: Logs, confidence: float) -> Estimate:
    """Give the interval of mean(a) - mean(b) for two independent samples of two values or more.

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
    return Estimate(
        low=float(walsh[skip]),
        centre=float(np.median(walsh)),
        high=float(walsh[-1 - skip]),
        method="hodges-lehmann",
    )


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
        far = observed - tolerance
        as_far = sum(
            int(np.count_nonzero(np.abs(_signs(flips, len(d)) @ d) >= far))
            for flips in _random_flips(len(d))
        )
        return (as_far + 1) / (RANDOM_FLIPS + 1)
    middle = len(d) // 2
    first, second = _signed_sums(d[:middle]), _signed_sums(d[middle:])
    below = np.searchsorted(second, observed - tolerance - first)
    one_side = int((len(second) - below).sum())
    return min(1.0, 2.0 * one_side / 2.0 ** len(d))


@lru_cache(maxsize=2)
def _random_flips(n: int) -> list[NDArray[np.uint8]]:
    """Draw sign patterns for n rounds, some rows at a time, with a bit for each sign.

    Remembered, as all metrics of all runs of that length ask for the same ones.
    """
    rng, signs = np.random.default_rng(0), np.array([-1, 1], np.int8)
    return [
        np.packbits(rng.choice(signs, (FLIPS_AT_ONCE, n)) > 0, axis=1)
        for _ in range(RANDOM_FLIPS // FLIPS_AT_ONCE)
    ]


def _signs(flips: NDArray[np.uint8], n: int) -> NDArray[np.float64]:
    return 2.0 * np.unpackbits(flips, axis=1, count=n).astype(np.float64) - 1.0


def _signed_sums(d: Logs) -> Logs:
    """List the sums under all sign patterns in ascending order."""
    sums = np.zeros(1)
    for value in d:
        # Two halves that are in order each: a stable sort just merges them.
        sums = np.sort(np.concatenate([sums - value, sums + value]), kind="stable")
    return sums


class FittedLine(NamedTuple):
    """A straight line fitted by least squares, by its slope."""

    slope: float
    error: float
    """The slope's standard error, by the scatter around the line; 0 where two points make it."""
    freedom: int

    def half_width(self, confidence: float) -> float:
        """Give half of the slope's interval, by Student's t."""
        return float(stdtrit(self.freedom, (1 + confidence) / 2)) * self.error

    def interval(self, confidence: float) -> Interval:
        """Give the slope with its interval."""
        half = self.half_width(confidence)
        return Interval(
            low=self.slope - half,
            estimate=self.slope,
            high=self.slope + half,
            confidence=confidence,
        )


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
    """Give the interval of the mean over machines, and that of one more machine."""
    centre, spread, k = float(means.mean()), float(means.std(ddof=1)), len(means)
    t = t_quantile(k, confidence)
    down, up = interference
    return tuple(  # type: ignore[return-value]
        Estimate(centre - half - down, centre, centre + half + up, "t")
        for half in (t * spread / sqrt(k), t * spread * sqrt(1 + 1 / k))
    )
