"""From the pilot of a variant to its warm-up, also in bursts, its ramp-up and window.

Never from a difference of variants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, expm1, floor, inf, sqrt
from typing import Self

import numpy as np

from webdyno.core.format import duration, percent
from webdyno.core.looks import BURST_PAUSE_S, BURST_S, Pilot
from webdyno.statistics.interval import responses_for_interval
from webdyno.statistics.steady import (
    FEWEST_RESPONSES,
    Onset,
    Series,
    autocorrelation_time,
    cycle,
    moving_means,
)
from webdyno.statistics.steady_starts import FEWEST_WINDOWS, latest_onset, steady_from

WINDOW_IN_MEMORIES = 5
"""Windows so much longer than the autocorrelation time are nearly independent of each other."""
WINDOW_IN_RESPONSES = 20
RAMP_UP_RESPONSES = 2
"""The first responses of a closed loop come one mean latency after its beginning, all at once."""
WINDOW_IN_PERIODS = 2
SHORTEST_WINDOW_S = 0.55
"""Shorter ones would be lost among starts, ramp-ups and readings of counters."""
LEAST_SLOT_S = 0.8
"""Ramp-up and shortest window together, whatever the budget; less where the ramp-up is shorter."""
BIAS = 0.005
"""ln: by how much the beginning of the load may move the throughput of a window after the
ramp-up."""
FEWEST_ROUNDS, FEWEST_SLOTS = 6, 2
"""A verdict needs six rounds, ABBA order two slots of each variant."""
WARMUP_SHARE = 1 / 3
MANY_LOOKS = 3.0
"""Standard errors that chance seldom passes in any of many places."""

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


@dataclass(frozen=True)
class Needs:
    """What the load and the experiment ask of a variant's slots."""

    latency_s: float
    """Mean latency under the load."""
    quantile: float | None
    """The highest quantile of the latency that is requested; None for none."""
    slots_per_round: int
    """The responses of so many slots are joined for a quantile."""
    most_warmup_s: float
    most_slot_s: float
    """What the budget allows for ramp-up and window together."""

    @classmethod
    def within(
        cls,
        budget_s: float,
        *,
        variants: int,
        start_s: float,
        latency_s: float,
        quantile: float | None,
        slots_per_round: int,
        rounds: int = FEWEST_ROUNDS,
    ) -> Self:
        """Derive the caps: so many rounds, of the fewest slots each, have to fit into a budget.

        `start_s`: a fresh start of a variant, until its first response. A third of what is left of
        a variant's share is for its warm-up. Windows may be as long as two slots a round allow,
        since their number can be chosen afterwards.
        """
        share_s = max(budget_s / rounds / variants - start_s, 0.0)
        warmup_s = WARMUP_SHARE * share_s
        slot_s = max((share_s - warmup_s) / FEWEST_SLOTS, SHORTEST_WINDOW_S)
        return cls(latency_s, quantile, slots_per_round, warmup_s, slot_s)


def settle(
    fresh_starts: Sequence[Sequence[Series]],
    load_starts: Sequence[Sequence[Series]],
    needs: Needs,
) -> Pilot:
    """Return the times that a variant needs.

    `fresh_starts`: of each, from the load's beginning on, the throughput first; more, such as CPU
    time per request, have to be steady as well. `load_starts`: the same from the beginning of each
    of some later loads, with a pause before each, in windows of one length. All series need at
    least one window.

    As long a warm-up as there may be is for what may still change. Throughput that only swings too
    slowly to call it steady isn't helped by one: what is missed here shows as a trend of the slots,
    which is adjusted.
    """
    latest, after_start = steady_from(fresh_starts, load_starts)
    throughput = after_start[0]
    settled = throughput.since(latest.at_s).without_outliers()
    memory_s = autocorrelation_time(settled.logs) * throughput.window_s
    period_s = cycle(settled)
    window_s, reason = _window(memory_s, period_s, exp(float(settled.logs.mean())), needs)
    begins_s = _ramp_up_s(_begun(fresh_starts, load_starts, latest), window_s, memory_s)
    ramp_up_s = max(begins_s, RAMP_UP_RESPONSES * needs.latency_s)
    least_s = min(ramp_up_s + SHORTEST_WINDOW_S, LEAST_SLOT_S)
    cut = cut_slot(ramp_up_s, window_s, period_s, max(needs.most_slot_s, least_s))
    reasons = [latest.why, f"{window_s:.2g} s per measurement for {reason}"]
    if period_s is not None:
        reasons.append(f"throughput oscillates with a period of {period_s:.2g} s")
    if cut != (ramp_up_s, window_s):
        shorter = f" (ideal: {duration(ramp_up_s)})" if cut[0] < ramp_up_s else ""
        reasons.append(
            f"the time limit allows {duration(cut[1])} after a ramp-up of "
            f"{duration(cut[0])}{shorter}"
        )
    if latest.at_s > needs.most_warmup_s:
        reasons.append(f"the warm-up is cut to {needs.most_warmup_s:.2g} s")
    return Pilot(
        warmup_s=needs.most_warmup_s
        if latest.may_begin_later
        else min(latest.at_s, needs.most_warmup_s),
        ramp_up_s=cut[0],
        window_s=cut[1],
        period_s=period_s,
        steady=latest.steady and latest.at_s <= needs.most_warmup_s and cut[0] >= ramp_up_s,
        why="; ".join(reasons),
    )


def _begun(
    fresh_starts: Sequence[Sequence[Series]],
    load_starts: Sequence[Sequence[Series]],
    latest: Onset,
) -> list[Series]:
    """Return all throughputs that were seen from a load's beginning on."""
    begun = [each[0] for each in load_starts]
    if latest.at_s or latest.may_begin_later or not begun:
        return begun
    return begun + [each[0] for each in fresh_starts if each[0].window_s == begun[0].window_s]


def cut_slot(
    ramp_up_s: float, window_s: float, period_s: float | None, most_s: float
) -> tuple[float, float]:
    """Cut ramp-up and window to what the budget allows.

    First the window, to whole periods if there is a cycle, but to no less than half of what is
    allowed: that costs precision. Then the ramp-up: that lets the load's beginning in.
    """
    room_s = most_s - ramp_up_s
    if window_s <= room_s:
        return ramp_up_s, window_s
    if period_s is not None and room_s >= period_s:
        return ramp_up_s, floor(room_s / period_s) * period_s
    if room_s >= most_s / 2:
        return ramp_up_s, room_s
    cut_s = min(window_s, most_s / 2)
    return min(ramp_up_s, most_s - cut_s), cut_s


def _window(
    memory_s: float, period_s: float | None, throughput_rps: float, needs: Needs
) -> tuple[float, str]:
    """Return the window's length and what asked for it; whole periods where there is a cycle."""
    wishes = [
        (SHORTEST_WINDOW_S, "stable throughput, the minimum"),
        (
            WINDOW_IN_MEMORIES * memory_s,
            f"{WINDOW_IN_MEMORIES} autocorrelation times of throughput",
        ),
        (WINDOW_IN_RESPONSES * needs.latency_s, f"{WINDOW_IN_RESPONSES} times the latency"),
    ]
    if needs.quantile is not None:
        responses = responses_for_interval(needs.quantile)
        wishes.append(
            (
                responses / throughput_rps / needs.slots_per_round,
                f"{responses} responses a round, which p{needs.quantile * 100:g} needs",
            )
        )
    if period_s is not None:
        wishes.append((WINDOW_IN_PERIODS * period_s, f"{WINDOW_IN_PERIODS} periods of its swing"))
    longest_s, reason = max(wishes)
    if period_s is not None:
        longest_s = ceil(longest_s / period_s - 1e-9) * period_s
    return longest_s, reason


def _ramp_up_s(load_starts: Sequence[Series], window_s: float, memory_s: float) -> float:
    """Return the ramp-up after which throughput doesn't depend on the load's beginning any more.

    In the median of the starts (Welch, "The statistical analysis of simulation results", 1983,
    takes their mean, which a stall in one of them moves) all windows that begin there, or within a
    window's length, have means within `BIAS` of the second half's median, or within `MANY_LOOKS` of
    their standard errors, which throughput with a memory has larger ones of. What a window has
    beyond what was seen is as the second half. Half of what was seen where there is no such place.
    And single windows that begin the load are excluded as long as they lie outside of all those of
    the second half.
    """
    length = min((len(series.logs) for series in load_starts), default=0)
    if length < 2:
        return 0.0
    step_s = load_starts[0].window_s
    if any(series.window_s != step_s for series in load_starts):
        raise ValueError("starts of load have to be recorded in windows of one length")
    logs = np.array([series.logs[:length] for series in load_starts])
    logs -= np.median(logs[:, length // 2 :], axis=1, keepdims=True)
    whole = max(1, round(window_s / step_s))
    size = min(whole, length // 2)
    usual = np.median(logs, axis=0)
    away = moving_means(usual, size) - np.median(usual[length // 2 :])
    # Of a few starts, neither the spread around their median nor a window's own says much. The
    # middle of the second half that windows are held against is as uncertain as their mean.
    spread = float(np.median(logs.std(axis=0, ddof=min(1, len(logs) - 1))))
    error = spread * (2 * max(memory_s / step_s, 1.0) / (size * len(logs))) ** 0.5
    biased = np.abs(away) > max(BIAS * whole / size, MANY_LOOKS * error)
    to_come = np.pad(biased[: length // 2], (0, size - 1))
    biased_soon = np.lib.stride_tricks.sliding_window_view(to_come, size).any(axis=1)
    late = usual[length // 2 :]
    unlike = (usual < late.min() - BIAS) | (usual > late.max() + BIAS)
    begins = np.argmin(biased_soon) if not biased_soon.all() else length // 2
    return float(max(begins, np.argmin(unlike))) * step_s


def bursts_may_end(throughputs: Sequence[float], *, rests: bool) -> bool:
    """Whether another burst would hardly make a variant faster.

    `throughputs`: of each burst so far. `rests`: whether its servers had nothing left to do at the
    end of the last pause.
    """
    return rests and len(throughputs) > 1 and throughputs[-1] <= throughputs[-2] * exp(LEVEL)


def looked_s(throughput_rps: float, least_s: float) -> float:
    """Return how long a look after bursts takes, of a variant with such a throughput."""
    responses = 2 * FEWEST_WINDOWS * FEWEST_RESPONSES
    wanted_s = (1 + SPARE) * responses / throughput_rps if throughput_rps else inf
    return min(max(wanted_s, least_s), SLOW_TIMES * least_s)


def gain(after_bursts: Series, continuous: Sequence[Series]) -> float:
    """Return ln of how much higher throughput is after bursts than after any load without a break.

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
    """Describe what bursts are worth to a variant; nothing where pauses make no difference.

    The throughput comes first in each look, and CPU per request after it, where that is known.
    It has the last word: other programs on the servers' CPUs change the throughput, and hardly
    that.
    """
    kinds = zip(after_bursts, *continuous, strict=False)
    throughput, *cost = [
        gain(
            seen[0] if not kind else _inverse(seen[0]),
            [_inverse(burst) if kind else burst for burst in seen[1:]],
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


def _inverse(series: Series) -> Series:
    return Series(series.window_s, -series.logs)


def _level(series: Series, size: int) -> tuple[float, float]:
    """Return the mean of the last windows, and its variance."""
    logs = series.without_outliers().logs[-size:]
    memory = autocorrelation_time(logs)
    return float(logs.mean()), memory * float(logs.var(ddof=1)) / len(logs)


def in_bursts(steady: Pilot, bursts: int, after: Sequence[Series], why: str) -> Pilot:
    """Return what a pilot found with a warm-up of so many bursts, after which `after` was seen."""
    settled = latest_onset(after)
    return steady.replace(
        warmup_s=bursts * BURST_S,
        in_bursts=True,
        steady=settled.steady and not settled.at_s,
        why=f"{why}; under continuous load {steady.why}",
    )
