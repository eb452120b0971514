"""Where steady state begins, how long the throughput remembers, and whether it swings.

One variant at a time: nothing here sees a difference between variants.

Steady state begins where the last stretch of equal level does (Barrett et al., "Virtual machine
warmup blows hot and cold", OOPSLA 2017; Traini et al., "Towards effective assessment of steady
state performance in Java software", EMSE 2023). Change points are found by a rule that takes values
for independent, which windows of throughput are not, so it sees means of batches that are longer
than the memory. MSER-5 (White, "An effective truncation
heuristic for bias reduction in simulation output", Simulation 1997) is right less often in the
same simulations: docs/validation/method.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log, sqrt
from typing import Literal, Self

import numpy as np

from webdyno.statistics.interval import Logs, fitted_line

FEWEST_RESPONSES = 25
"""Windows are joined until they have so many responses on average: counting noise is 20% then."""
TOLERANCE = 0.01
"""Levels that differ by less (ln) count as one, where a window's noise isn't larger."""
SMALLEST_NOISE = 1e-3
"""Standard deviation (ln) below which differences aren't worth a change point."""
PENALTY = 4.0
"""Of a change point, in units of variance · ln n; 2 is Schwarz's criterion."""
BATCH_IN_MEMORIES = 2
NO_MEMORY = 1.5
"""Autocorrelation time, in windows, up to which they count as independent."""
STEADY_SHARE = 0.5
"""Share of the data in which the last level must begin; Barrett et al. have three quarters, of far
longer data. Of a short look the end of a warm-up that fades is level enough by chance, and MSER
takes no truncation in the second half either."""
STEADY_BATCHES = 5
SLOWER, REACH_WINDOWS = 0.1, 8
"""ln: a beginning is over no sooner than a median of so many windows is as near to later ones."""
TREND_ALPHA = 0.01
OUTLIER_SDS, OUTLIER_REACH = 3.5, 7
"""A window farther than this from the median of its neighbours, so many on each side, is cut."""
CYCLE_ALPHA = 0.01
FEWEST_PERIODS = 4
FINER = 8
"""By how much a period is known better than to a step of the periodogram."""
MAD_TO_SD = 1.4826
"""Turns the median absolute deviation of normal values into their standard deviation."""
DECILE_TO_SD = 0.608
"""Does the same to the ninth decile of their absolute deviations."""


@dataclass(frozen=True)
class Series:
    """ln of throughput, or of CPU per request, window after window."""

    window_s: float
    logs: Logs

    @classmethod
    def of_counts(cls, counts: Sequence[int], window_s: float, joined: int = 1) -> Self:
        """Take responses per window of `window_s`; so many neighbours are joined to one."""
        sums = _batches(np.array(counts, dtype=float), joined) * joined
        return cls(window_s * joined, np.log((sums + 0.5) / (window_s * joined)))

    @property
    def halves(self) -> tuple[Logs, Logs]:
        """Of an odd number of windows the second half has one more."""
        middle = len(self.logs) // 2
        return self.logs[:middle], self.logs[middle:]

    def since(self, at_s: float) -> Self:
        """Return what comes from then on: the last window at least."""
        begin = min(round(at_s / self.window_s), len(self.logs) - 1)
        return type(self)(self.window_s, self.logs[begin:])

    def without_outliers(self) -> Self:
        """Put the median of its neighbours in place of an outlier, such as a stall of the machine.

        Hampel's filter: outliers are known by the neighbours' median absolute deviation. The first
        windows stay as they are, since a slow beginning may be as short as a stall.
        """
        if len(self.logs) < 3:
            return self
        mode: Literal["reflect", "edge"] = "reflect" if len(self.logs) > OUTLIER_REACH else "edge"
        padded = np.pad(self.logs, OUTLIER_REACH, mode=mode)
        near = np.lib.stride_tricks.sliding_window_view(padded, 2 * OUTLIER_REACH + 1)
        middle = np.median(near, axis=1)
        spread = MAD_TO_SD * np.median(np.abs(near - middle[:, None]), axis=1)
        allowed = OUTLIER_SDS * np.maximum(spread, SMALLEST_NOISE)
        outlying = np.abs(self.logs - middle) > allowed
        outlying[:OUTLIER_REACH] = False
        return type(self)(self.window_s, np.where(outlying, middle, self.logs))


def windows_to_join(counts: Sequence[int]) -> int:
    """Return how many windows have `FEWEST_RESPONSES` together, on average; all if none do."""
    needed = FEWEST_RESPONSES * len(counts) / max(sum(counts), 1)
    return max(min(ceil(needed), len(counts)), 1)


@dataclass(frozen=True)
class Onset:
    """Where the last stretch of equal level begins."""

    at_s: float
    steady: bool
    """Whether that stretch is long and level enough to be called steady."""
    why: str
    may_begin_later: bool = False
    """Whether the level still rose or fell where the series ends, or the series is too short."""
    gets_faster: bool = False
    """Whether it is known to be faster later."""

    @property
    def doubt(self) -> int:
        """How doubtful the beginning is, from 0 (it is steady) to 2 (it may begin later)."""
        return 0 if self.steady else 2 if self.may_begin_later else 1


def onset(series: Series, *, is_throughput: bool = True) -> Onset:
    """Find where steady state begins, of throughput or of CPU per request."""
    clean = series.without_outliers()
    tail = Series(clean.window_s, clean.halves[1])
    memory = autocorrelation_time(_without_trend(tail.logs))
    period_s = cycle(tail) or 0.0
    batch = max(
        ceil(BATCH_IN_MEMORIES * memory) if memory > NO_MEMORY else 1,
        ceil(period_s / series.window_s),
    )
    levels = _batches(clean.logs, batch)
    if len(levels) < 2 * STEADY_BATCHES:
        remembered = f"windows up to {batch * series.window_s:.2g} s apart are still alike"
        why = f"too short to decide: {remembered}"
        too_few = len(clean.logs) < 2 * STEADY_BATCHES
        return Onset(0.0, steady=False, why=why, may_begin_later=too_few)
    first = _first_of_last_level(levels)
    if is_throughput:
        first = max(first, ceil(_reached(clean) / batch))
    at_s, rest = first * batch * series.window_s, levels[first:]
    if len(rest) < STEADY_BATCHES or first >= STEADY_SHARE * len(levels):
        why = f"its level changed {at_s:.2g} s after the start, too late to know whether for good"
        return Onset(at_s, steady=False, why=why, may_begin_later=True)
    change = _significant_change(rest)
    if abs(change) > TOLERANCE:
        direction = "rises" if change > 0 else "falls"
        why = f"it still {direction}, by {abs(exp(change) - 1):.1%} over the last stretch"
        return Onset(at_s, steady=False, why=why, may_begin_later=True)
    return Onset(at_s, steady=True, why=f"steady from {at_s:.2g} s on")


def _first_of_last_level(levels: Logs) -> int:
    """Return where the trailing segments begin that have the last one's level."""
    noise = max(_noise(levels), SMALLEST_NOISE)
    edges = [*change_points(levels, PENALTY * noise**2 * log(len(levels))), len(levels)]
    begins = [0, *edges[:-1]]
    last = levels[begins[-1] :]
    first = begins[-1]
    for begin, end in zip(begins[-2::-1], edges[-2::-1], strict=True):
        segment = levels[begin:end]
        blurred = 2 * noise * sqrt(1 / len(segment) + 1 / len(last))
        if abs(segment.mean() - last.mean()) > max(TOLERANCE, blurred):
            break
        first = begin
    return first


def _reached(series: Series) -> int:
    """Return the window from which on throughput is about what it is later.

    A steep beginning counts as noise, and a slow stretch that others make lengthens batches: change
    points see neither then. Medians of the second half hardly know of such a stretch.
    """
    size = min(REACH_WINDOWS, len(series.logs) // 4)
    if size < 2:
        return 0
    medians = np.median(np.lib.stride_tricks.sliding_window_view(series.logs, size), axis=1)
    usual = float(np.median(medians[len(series.logs) // 2 :]))
    return int(np.argmax(medians >= usual - SLOWER))


def _noise(values: Logs) -> float:
    """Estimate the standard deviation from neighbours' differences, which steps hardly enter.

    From the median difference, or the ninth decile where that shows more: next to a program that
    works in bursts most windows lose nothing and the others much, of which the median sees nothing.
    """
    apart = np.abs(np.diff(values))
    ninth_decile = float(np.quantile(apart, 0.9, method="lower"))
    return max(MAD_TO_SD * float(np.median(apart)), DECILE_TO_SD * ninth_decile) / sqrt(2)


def _significant_change(levels: Logs) -> float:
    """Return the change over the stretch on the fitted line, 0 where it may be chance."""
    n = len(levels)
    line = fitted_line(np.arange(n, dtype=float), levels)
    sure = abs(line.slope) > line.half_width(1 - TREND_ALPHA)
    return line.slope * (n - 1) if sure else 0.0


def autocorrelation_time(values: Logs) -> float:
    """Return the integrated autocorrelation time, in windows: 1 when there is no memory.

    That is 1 + twice the sum of all autocorrelations: n windows say as much of their mean as
    n / time independent ones. Geyer's initial monotone
    sequence ("Practical Markov chain Monte Carlo", Statistical Science 1992): sums of neighbouring
    pairs of autocorrelations are added while they are positive, none larger than the one before.
    """
    rho = _autocorrelations(values)
    if rho is None:
        return 1.0
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = pairs[: int(np.argmax(pairs <= 0))] if np.any(pairs <= 0) else pairs
    return max(1.0, 2 * float(np.minimum.accumulate(positive).sum()) - 1)


def _autocorrelations(values: Logs) -> Logs | None:
    away = values - values.mean() if len(values) else values
    n = len(away)
    if n < 4 or float(away @ away) / n <= (SMALLEST_NOISE / 10) ** 2:
        return None
    spectrum = np.abs(np.fft.rfft(away, 2 * n)) ** 2
    covariances: Logs = np.fft.irfft(spectrum)[:n]
    return np.asarray(covariances / covariances[0])


def cycle(series: Series) -> float | None:
    """Return the period of a cycle in seconds; None unless it stands out of red noise.

    The highest peak of the periodogram against the spectrum of a first-order autoregression with
    white (counting) noise on top, fitted to the first two autocorrelations, at 1% for all
    frequencies together (Torrence & Compo, "A practical guide to wavelet analysis", BAMS 1998,
    section 4). At least four periods must be there.
    """
    values = _without_trend(series.logs)
    rho, n = _autocorrelations(values), len(values)
    if rho is None or n < 4 * FEWEST_PERIODS:
        return None
    power = np.abs(np.fft.rfft(values)) ** 2 / n / values.var()
    lags = np.arange(FEWEST_PERIODS, n // 2)
    standing_out = power[lags] / _red_noise(rho, lags / n)
    highest = int(np.argmax(standing_out))
    if standing_out[highest] < -log(1 - (1 - CYCLE_ALPHA) ** (1 / len(lags))):
        return None
    finer = np.abs(np.fft.rfft(values, FINER * n))
    near = np.arange((lags[highest] - 1) * FINER, (lags[highest] + 1) * FINER)
    return FINER * n / int(near[np.argmax(finer[near])]) * series.window_s


def _red_noise(rho: Logs, frequency: Logs) -> Logs:
    """Return the normalised spectrum of an AR(1) with white noise that has these correlations."""
    memory = float(np.clip(rho[2] / rho[1], 0, 0.99)) if rho[1] > 0 else 0.0
    memory = max(memory, float(np.clip(rho[1], 0, 0.99)))
    red = min(1.0, float(rho[1]) / memory) if memory > 0 else 0.0
    shape = 1 + memory**2 - 2 * memory * np.cos(2 * np.pi * frequency)
    spectrum: Logs = (1 - red) + red * (1 - memory**2) / shape
    return spectrum


def _without_trend(values: Logs) -> Logs:
    if len(values) < 3:
        return values
    place = np.arange(len(values)) - (len(values) - 1) / 2
    line = values.mean() + float(place @ values) / float(place @ place) * place
    return np.asarray(values - line)


def _batches(values: Logs, size: int) -> Logs:
    """Return the means of so many neighbours each; an incomplete last batch is excluded."""
    whole = len(values) // size * size
    return np.asarray(values[:whole].reshape(-1, size).mean(axis=1))


def moving_means(values: Logs, size: int) -> Logs:
    """Return the mean of so many values that follow each other, from each place on."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, size).mean(axis=1))


def change_points(values: Logs, penalty: float, fewest: int = 1) -> list[int]:
    """Return the indices at which a new level begins, each level having so many values or more.

    PELT: the levels of least squares where each change has its price (Killick, Fearnhead and
    Eckley, "Optimal detection of changepoints with a linear computational cost", JASA 2012). The
    caller sets that penalty by what is known of the noise.
    """
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    came_from = np.zeros(n + 1, dtype=int)
    usable_until = np.full(n + 1, n)
    """Of each index: the last end up to which the level that begins there may be the best one."""
    candidates = np.array([0])
    for end in range(fewest, n + 1):
        total = sums[end] - sums[candidates]
        cost = squares[end] - squares[candidates] - total**2 / (end - candidates)
        whole = best[candidates] + cost
        last = int(np.argmin(whole))
        best[end], came_from[end] = whole[last] + penalty, candidates[last]
        # A level that begins at `end` will be better, once it has so many values.
        worse = candidates[whole > best[end]]
        usable_until[worse] = np.minimum(usable_until[worse], end + fewest - 1)
        candidates = candidates[usable_until[candidates] > end]
        candidates = np.append(candidates, end + 1 - fewest)
    points: list[int] = []
    last = int(came_from[n])
    while last > 0:
        points.append(last)
        last = int(came_from[last])
    return points[::-1]
