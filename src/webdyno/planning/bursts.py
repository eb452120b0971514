"""What a warm-up in bursts is worth to a variant. Never from a difference of variants."""

from collections.abc import Sequence
from math import exp, expm1, inf, sqrt

from webdyno.core.format import percent
from webdyno.core.pilot import BURST_PAUSE_S, BURST_S, Pilot
from webdyno.statistics.steady import FEWEST_RESPONSES, Series, autocorrelation_time
from webdyno.statistics.steady_starts import FEWEST_WINDOWS, latest_onset

GAIN = 0.03
"""ln: fresh starts of one server differ by as much now and then, whatever warmed them up."""
STANDARD_ERRORS = 3.0
HOW = f"warm-up in bursts of {BURST_S:g} s with pauses of {BURST_PAUSE_S:g} s"
SLOW_TIMES = 4.0
"""A look at a variant that answers seldom is longer, by so many times at most,"""
SPARE = 0.25
"""… and by so much more than its windows take: throughput isn't the same all the time."""
LEVEL = 0.02
"""A burst that is no faster than the one before, by so much, found nothing left to win."""


def bursts_may_end(throughputs: Sequence[float], *, rests: bool) -> bool:
    """Whether another burst would hardly make a variant faster.

    `rates`: of each burst so far. `rests`: whether its servers had nothing left to do at the end of
    the last pause.
    """
    return rests and len(throughputs) > 1 and throughputs[-1] <= throughputs[-2] * exp(LEVEL)


def looked_s(throughput_rps: float, least_s: float) -> float:
    """Give how long a look after bursts takes, of a variant with such a throughput."""
    responses = 2 * FEWEST_WINDOWS * FEWEST_RESPONSES
    wanted_s = (1 + SPARE) * responses / throughput_rps if throughput_rps else inf
    return min(max(wanted_s, least_s), SLOW_TIMES * least_s)


def gain(after_bursts: Series, continuous: Sequence[Series]) -> float:
    """Give ln of how much higher throughput is after bursts than after any load without a break.

    Of each the last part is compared, as long as half of what was seen after bursts. 0 where the
    difference is small, or may be chance.
    """
    size = len(after_bursts.logs) // 2
    if size < FEWEST_WINDOWS or not continuous:
        return 0.0
    mean, variance = _level(after_bursts, size)
    gains = []
    for series in continuous:
        other, its_variance = _level(series, size)
        least = max(GAIN, STANDARD_ERRORS * sqrt(variance + its_variance))
        gains.append(mean - other if mean - other > least else 0.0)
    return min(gains)


def worth(after_bursts: Sequence[Series], continuous: Sequence[Sequence[Series]]) -> str:
    """Say what bursts are worth to a variant; nothing where pauses make no difference.

    The throughput comes first in each look, and CPU per request after it, where that is known.
    It has the last word: other programs on the servers' CPUs change the throughput, and hardly
    that.
    """
    kinds = zip(after_bursts, *continuous, strict=False)
    throughput, *cost = [
        gain(
            seen[0] if not kind else _turned(seen[0]),
            [_turned(burst) if kind else burst for burst in seen[1:]],
        )
        for kind, seen in enumerate(kinds)
    ]
    if cost == [0.0]:
        return ""
    if throughput:
        return f"{HOW}: {percent(expm1(throughput))} faster than under continuous load"
    if cost:
        less = percent(-expm1(-cost[0]))
        return f"{HOW}: {less} less CPU per request than under continuous load"
    return ""


def _turned(series: Series) -> Series:
    """Turn CPU per request into requests per CPU time."""
    return Series(series.window_s, -series.logs)


def _level(series: Series, size: int) -> tuple[float, float]:
    """Give the mean of the last windows, and its variance."""
    logs = series.cleaned().logs[-size:]
    memory = autocorrelation_time(logs)
    return float(logs.mean()), memory * float(logs.var(ddof=1)) / len(logs)


def in_bursts(steady: Pilot, bursts: int, after: Sequence[Series], why: str) -> Pilot:
    """Give what a pilot found with a warm-up of so many bursts, after which `after` was seen."""
    settled = latest_onset(after)
    return steady.replace(
        warmup_s=bursts * BURST_S,
        in_bursts=True,
        steady=settled.steady and not settled.at_s,
        why=f"{why}; under continuous load {steady.why}",
    )
