"""From the pilot of a variant to its warm-up, ramp-up and window.

Never from a difference of variants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, floor
from typing import Literal, Self

import numpy as np

from webdyno.judge.interval import Logs
from webdyno.judge.order_statistics import responses_for_interval
from webdyno.judge.steady import (
    TOLERANCE,
    Onset,
    Series,
    autocorrelation_time,
    cycle,
    onset,
)
from webdyno.model.format import duration
from webdyno.model.pilot import Pilot

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
EARLY_S = 0.3
"""A steady state that begins later has to be seen at more than one fresh start. An earlier one
doesn't: such a warm-up costs no more than a slot."""
FEWEST_WINDOWS = 4
"""Of a level."""
BEGINNINGS = (0.25, 0.5)
"""Shares of a look: throughput that swings slowly may have begun unlike it went on."""
WARMUP_SHARE = 1 / 3
Step = Literal["enough", "longer", "again"]
"""No more load after a fresh start, more of it, or another fresh start."""
FEW_LOOKS, MANY_LOOKS = 2.0, 3.0
"""Standard errors that chance seldom passes in one place, and that it doesn't in many."""
FASTER = 0.05
"""ln: a variant that gets faster by so much still warms up."""


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


def latest_onset(after_start: Sequence[Series]) -> Onset:
    """Tell from when on all that was seen after a fresh start is steady."""
    onsets = [onset(series) for series in after_start]
    doubtful = max(onsets, key=lambda each: (each.doubt, each.at_s))
    return replace(doubtful, at_s=max(begins.at_s for begins in onsets))


def steady_from(
    fresh_starts: Sequence[Sequence[Series]], load_starts: Sequence[Sequence[Series]] = ()
) -> tuple[Onset, Sequence[Series]]:
    """Tell from when on a variant is steady after a start, and what was seen of the one that tells.

    Warming up is what a variant does at each start, so the one that was steady first tells: what
    was seen later in others came from elsewhere. And after warming up it is never again as it was:
    a late change is believed only then, and a level that swings too slowly to be called steady is
    taken for steady if neither its first quarter nor its first half is unlike what follows, and
    more so than its swings make it. What gets faster, or is faster at each start of load that
    comes after it, isn't steady, however level it looks.

    `load_starts`: those after the last of the fresh starts.
    """
    looks = [(latest_onset(each), each) for each in fresh_starts]
    looks[-1] = (_unless_faster(*looks[-1], load_starts), fresh_starts[-1])
    begins, seen = min(looks, key=_worth)
    kinds = _by_kind(fresh_starts, load_starts)
    if (begins.at_s or not begins.steady) and not begins.gets_faster:
        length_s = len(seen[0].logs) * seen[0].window_s
        begins_s = [begins.at_s] if begins.at_s else [share * length_s for share in BEGINNINGS]
        unlike_s = [
            begin_s
            for begin_s in begins_s
            if not all(_is_so_again(begin_s, *kind) for kind in kinds)
            and (begins.at_s or any(_is_beyond_swings(begin_s, series) for series in seen))
        ]
        if not unlike_s:
            why = f"no warm-up needed: the first {begins_s[-1]:.2g} s look like the rest"
            begins = Onset(0.0, steady=True, why=why)
        elif not begins.at_s:
            why = f"warm-up {unlike_s[-1]:.2g} s: throughput differs at the start and never again"
            begins = Onset(unlike_s[-1], steady=False, why=why, may_begin_later=True)
    return begins, seen


def _unless_faster(
    begins: Onset, seen: Sequence[Series], load_starts: Sequence[Sequence[Series]]
) -> Onset:
    """Give an onset as it is, unless the variant was seen to get faster after it."""
    settled = seen[0].since(begins.at_s).logs
    ends = [each[0].halves[1] for each in load_starts]
    if ends and all(_is_higher(end, settled) for end in ends):
        why = "throughput is higher at each later start of the load"
    elif not begins.steady and _gets_faster(seen, begins.at_s):
        why = "throughput still rises, and CPU per request falls"
    else:
        return begins
    return replace(begins, steady=False, why=why, may_begin_later=True, gets_faster=True)


def _gets_faster(seen: Sequence[Series], at_s: float) -> bool:
    """Whether the second half of what was seen from `at_s` on is faster, and costs less CPU.

    Both: throughput also rises where other programs leave the CPUs.
    """
    halves = [series.since(at_s).halves for series in seen]
    if len(halves) < 2:
        return False
    (slower, faster), (costly, cheap) = halves[:2]
    return _is_higher(faster, slower) and _is_higher(costly, cheap)


def _is_higher(logs: Logs, than: Logs) -> bool:
    """Whether its mean is higher by more than `FASTER`, and than the swings of both make it."""
    if min(len(logs), len(than)) < FEWEST_WINDOWS:
        return False
    error = (_variance_of_mean(logs) + _variance_of_mean(than)) ** 0.5
    return bool(logs.mean() - than.mean() > max(FASTER, FEW_LOOKS * error))


def _variance_of_mean(logs: Logs) -> float:
    return autocorrelation_time(logs) * float(logs.var()) / len(logs)


def _by_kind(
    fresh_starts: Sequence[Sequence[Series]], load_starts: Sequence[Sequence[Series]]
) -> list[tuple[Sequence[Series], Sequence[Series]]]:
    """Give the throughputs of all starts, and whatever else is told of all fresh ones."""
    fresh, begun = ([*zip(*each, strict=False)] for each in (fresh_starts, load_starts))
    return [*zip(fresh, [*begun, *[()] * len(fresh)], strict=False)]


def _worth(look: tuple[Onset, Sequence[Series]]) -> tuple[float, ...]:
    """Order looks: those that show a steady state, the earliest first, then the longest ones."""
    begins, seen = look
    length = len(seen[0].logs)
    return (0, begins.at_s, -length) if begins.steady else (1, -length, begins.doubt, begins.at_s)


def _is_so_again(
    at_s: float, fresh_starts: Sequence[Series], load_starts: Sequence[Series]
) -> bool:
    """Whether at some time the level was as it is until `at_s` after a start.

    It is not if all beginnings lie on one side of all that came later, in stretches of that length,
    or of all there is where that is shorter; of starts of load it is the second half. Those that
    followed a shorter look came too early to tell.
    """
    before: list[float] = []
    later: list[float] = []
    for series in (
        start for start in fresh_starts if len(start.logs)
    ):  # a start may tell of no CPU time
        begin = _windows(at_s, series)
        before.append(float(series.logs[:begin].mean()))
        later += _levels(series.logs[begin:], begin)
    last = fresh_starts[-1]
    came_later = len(last.logs) >= _windows(at_s, last)
    for series in load_starts if came_later else ():
        later += _levels(series.halves[1], _windows(at_s, series))
    if not before or not later:
        return False
    return min(before) <= max(later) + TOLERANCE and max(before) >= min(later) - TOLERANCE


def _is_beyond_swings(at_s: float, series: Series) -> bool:
    """Whether the mean until then differs from the rest's by more than the swings seen make it."""
    begin = _windows(at_s, series)
    parts = [series.logs[:begin], series.logs[begin:]]
    if min(map(len, parts)) < FEWEST_WINDOWS:
        return True
    variance = sum(map(_variance_of_mean, parts))
    return bool(abs(parts[1].mean() - parts[0].mean()) > FEW_LOOKS * variance**0.5)


def _windows(length_s: float, series: Series) -> int:
    """Count its windows in so long a time; what was seen at other starts may be told by others."""
    return max(1, round(length_s / series.window_s))


def _levels(logs: Logs, size: int) -> list[float]:
    if len(logs) < FEWEST_WINDOWS:
        return []
    return [float(mean) for mean in _moving_means(logs, min(size, len(logs)))]


def next_step(
    fresh_starts: Sequence[Sequence[Series]],
    load_starts: Sequence[Sequence[Series]] = (),
    *,
    is_last_start: bool,
) -> Step:
    """Say what the looks at fresh starts, the last of which goes on, ask for.

    A change that is seen late is what the variant does at each start, or came from elsewhere:
    another start tells, where there may be one, unless some starts of load after this one do.
    """
    begins, _ = steady_from(fresh_starts, load_starts)
    if begins.gets_faster:
        return "longer"
    if begins.at_s > EARLY_S and not is_last_start:
        return "again"
    return "enough" if begins.steady else "longer"


def settle(
    fresh_starts: Sequence[Sequence[Series]],
    load_starts: Sequence[Sequence[Series]],
    needs: Needs,
) -> Pilot:
    """Give the times that a variant needs.

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
    settled = throughput.since(latest.at_s).cleaned()
    memory_s = autocorrelation_time(settled.logs) * throughput.window_s
    period_s = cycle(settled)
    window_s, reason = _window(memory_s, period_s, exp(float(settled.logs.mean())), needs)
    begins_s = _ramp_up_s(_begun(fresh_starts, load_starts, latest), window_s, memory_s)
    ramp_up_s = max(begins_s, RAMP_UP_RESPONSES * needs.latency_s)
    least_s = min(ramp_up_s + SHORTEST_WINDOW_S, LEAST_SLOT_S)
    cut = _fitted(ramp_up_s, window_s, period_s, max(needs.most_slot_s, least_s))
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
    """Give all throughputs that were seen from a load's beginning on.

    A variant that needs no warm-up begins the load after a fresh start as it does later.
    """
    begun = [each[0] for each in load_starts]
    if latest.at_s or latest.may_begin_later or not begun:
        return begun
    return begun + [each[0] for each in fresh_starts if each[0].window_s == begun[0].window_s]


def _fitted(
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
    """Give the window's length and what asked for it; whole periods where there is a cycle."""
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
    """Give the ramp-up after which throughput doesn't depend on the load's beginning any more.

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
    away = _moving_means(usual, size) - np.median(usual[length // 2 :])
    # Of a few starts, neither the spread around their median nor a window's own tells much. The
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


def _moving_means(values: Logs, size: int) -> Logs:
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, size).mean(axis=1))
