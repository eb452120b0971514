"""What one long stretch of load on a variant shows that short slots can't.

Stalls: windows in which next to nothing was answered. A stall is the servers' own unless the
stretch's own evidence names another cause for at least half of its length. Drifts: the level of
throughput or CPU time per request changed for good. Growth: memory that goes on growing.

One variant at a time: nothing here sees a difference between variants.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, log, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

from webdyno.judge.failing import failing_in, is_failing, while_it_served
from webdyno.judge.growth import memory_growth, more_open
from webdyno.judge.interval import LARGEST_LOG, TINY, Logs
from webdyno.judge.look_course import course_of, slopes_of
from webdyno.judge.look_parts import (
    all_times,
    breaks,
    during,
    length_s,
    moved,
    stretches,
    trial_of_all,
)
from webdyno.judge.slow import SlowStretch, slow_stretches
from webdyno.judge.steady import MAD_TO_SD, SMALLEST_NOISE, change_points, windows_to_join
from webdyno.model.interval import Interval
from webdyno.model.long_look import (
    Drift,
    Failing,
    LongLook,
    ServerSample,
    Slow,
    Stall,
    StallCause,
    Stalls,
)
from webdyno.model.records import LongLookRecord

QUIET_SHARE = 0.05
"""A window is quiet that has less than this share of the usual number of responses."""
QUIET_RESPONSES = 5
"""Responses may come in bursts that many response times apart, which isn't a stall."""
BURST = 0.5
"""A window with so much more than usual works off the queue of an open loop."""
EXCUSING_SHARE = 0.5
"""Of a stall's length, for which another cause has to be seen."""
STOPS_OF_THEIRS = 2
"""Stalls in which the servers were stopped, from which on the stops are their own."""
LONG_GAP = 6
"""Windows between two readings of the servers, which are two windows apart as a rule."""
CONFIDENCE = 0.95
REGULAR_GAPS = 2
"""So many gaps between stalls show how regular they are."""
EDGE_ERROR = 0.2
"""Of a window: how well the beginning and end of a stall are known, about."""
BATCHES = 20
SMALLEST_DRIFT = log1p(0.05)
DRIFT_SDS = 4.0
DRIFT_PENALTY = 8.0
"""Of a change point, in units of variance · ln n: twice the penalty of pilots."""
DISTURBED_SHARE = 0.05
"""Of a window, which steal and other programs may take before it is left out of drifts."""
HIDDEN_MEMORY, MOST_ALIKE = 0.5, 0.9
"""Of how alike neighbouring parts are, so much is taken out with a step; and what counts at most
(tests/judge/later_simulation.py)."""


def stalls_of(*parts: LongLookRecord) -> list[Stall]:
    """Give the stalls in a look, those that the servers didn't cause left out."""
    return _own(stretches(parts))


def all_stalls_of(*parts: LongLookRecord) -> list[Stall]:
    """Give the stalls in a look, and who caused each."""
    return _with_causes(stretches(parts))


def _own(joined: Sequence[LongLookRecord]) -> list[Stall]:
    return [stall for stall in _with_causes(joined) if stall.cause is None]


def look_at(*parts: LongLookRecord) -> LongLook:
    """Analyse the look at a variant, whose parts are given in their order; it is remembered.

    Drifts and growth are sought in the longest stretch: each has a fresh start of its own.
    """
    return _look_at(_Parts(parts))


class _Parts(tuple[LongLookRecord, ...]):
    """Records that are told apart by who they are: comparing all that they hold takes long."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Parts) and list(map(id, self)) == list(map(id, other))


@lru_cache(maxsize=64)
def _look_at(parts: _Parts) -> LongLook:
    whole = stretches(parts)
    joined = [while_it_served(it) for it in whole]
    longest = max(joined, key=length_s)
    found, slow = _with_causes(joined), slow_in(joined)
    own = [stall for stall in found if stall.cause is None]
    excused = [stall for stall in found if stall.cause is not None]
    window_s = max(_windows(record)[1] for record in joined)
    looked_s = sum(map(length_s, joined)) - sum(stall.length_s for stall in excused)
    times = all_times(parts)
    course = course_of(parts, own) if len(parts) > 1 else []
    return LongLook(
        arm=parts[0].arm,
        looked_s=max(looked_s, 0.0),
        shortest_s=2 * window_s,
        ended_by=parts[-1].ended_by,
        breaks=breaks(parts),
        parts=course,
        slopes=slopes_of(course),
        stalls=sum_up(own, looked_s, window_s) if own else None,
        excused=excused,
        slow=_slow(slow, looked_s, window_s),
        drifts=list(_drifts(longest, *_windows(longest), _apart(longest))),
        growth=memory_growth(longest),
        more_open=more_open(longest),
        failing=_failing(whole),
        died=parts[-1].died,
        longest_response_s=times.max / 1e6 if times.max is not None else None,
        trial=trial_of_all(parts),
        times=times.histogram,
    )


def _failing(whole: Sequence[LongLookRecord]) -> list[Failing]:
    found, begin_s = list[Failing](), 0.0
    for record in whole:
        failing = failing_in(record)
        found += [it.model_copy(update={"at_s": it.at_s + begin_s}) for it in failing]
        begin_s += length_s(record)
    return found


def _with_causes(joined: Sequence[LongLookRecord]) -> list[Stall]:
    """Find all stalls in some stretches, and who caused each.

    Nobody can tell who stopped the servers by a signal: once it may be somebody's debugger, again
    and again it is how they work.
    """
    found, begin_s = list[Stall](), 0.0
    for record in joined:
        failing = failing_in(record)
        stalls = [
            stall.model_copy(update={"cause": _cause_of(stall, record)})
            for stall in stalls_in(*_windows(record))
            if not is_failing(stall, failing)
        ]
        found += moved(stalls, begin_s)
        begin_s += length_s(record)
    stopped = [stall for stall in found if stall.cause == "stopped"]
    if len(stopped) < STOPS_OF_THEIRS:
        return found
    return [it.model_copy(update={"cause": None}) if it in stopped else it for it in found]


def _apart(record: LongLookRecord) -> list[Stall]:
    """Give what has to be left out to see the levels between."""
    return [*_with_causes([record]), *map(_as_stall, _slow_of(record))]


def slow_in(joined: Sequence[LongLookRecord]) -> list[SlowStretch]:
    """Give when the servers were much slower than usual in some stretches, by their own doing."""
    found, begin_s = list[SlowStretch](), 0.0
    for record in joined:
        found += [it._replace(at_s=it.at_s + begin_s) for it in _slow_of(record)]
        begin_s += length_s(record)
    return found


def _slow_of(record: LongLookRecord) -> list[SlowStretch]:
    if record.load.loop != "closed":
        return []
    apart = [*_with_causes([record]), *record.client_pauses]
    found = slow_stretches(*_windows(record), apart)
    return [it for it in found if not _slowed_by_others(it, record)]


def _slowed_by_others(slow: SlowStretch, record: LongLookRecord) -> bool:
    """Whether half of what was lost was taken by others, beyond what they always took."""
    whole_s = len(record.responses) * record.window_s
    always = _others(Stall(at_s=0.0, length_s=whole_s, cause=None), record)
    then = _others(_as_stall(slow), record)
    share = slow.length_s / whole_s
    more_s = sum(max(took_s - always[cause] * share, 0.0) for cause, took_s in then.items())
    return more_s >= EXCUSING_SHARE * (1 - slow.level) * slow.length_s


def _as_stall(slow: SlowStretch) -> Stall:
    return Stall(at_s=slow.at_s, length_s=slow.length_s, cause=None)


def _slow(found: Sequence[SlowStretch], looked_s: float, window_s: float) -> Slow | None:
    if not found:
        return None
    return Slow(
        level=sum(it.level for it in found) / len(found),
        stretches=sum_up([_as_stall(it) for it in found], looked_s, window_s),
    )


def seen_in(*parts: LongLookRecord) -> list[Stall]:
    """Give what a look goes on for, to see how often it comes: stalls, or slow stretches."""
    joined = [while_it_served(it) for it in stretches(parts)]
    return _own(joined) or [_as_stall(it) for it in slow_in(joined)]


def _windows(record: LongLookRecord) -> tuple[Logs, float]:
    """Give the responses of windows that are long enough to tell quiet from slow, and how long."""
    joined = _joined(record)
    return _sums(record.responses, joined), record.window_s * joined


def _joined(record: LongLookRecord) -> int:
    """Give how many windows are looked at as one: enough to tell quiet from slow or rare."""
    few = windows_to_join(record.responses)
    slow_s = QUIET_RESPONSES * (record.load.response_time_us.p50 or 0.0) / 1e6
    return max(few, -(-int(slow_s * 1e6) // int(record.window_s * 1e6)), 1)


def _sums(counts: Sequence[int], joined: int) -> Logs:
    whole = len(counts) // joined * joined
    return np.asarray(np.array(counts[:whole], dtype=float).reshape(-1, joined).sum(axis=1))


def stalls_in(counts: Logs, window_s: float) -> Iterator[Stall]:
    """Give the stretches of quiet windows, cause unknown, with what their edges add.

    A stall begins and ends within windows: those at its edges lack as many responses as it took of
    them. In an open loop the window after it has more than usual, which adds nothing.
    """
    busy = counts[counts > 0]
    if len(busy) < 2:
        return
    usual = float(np.median(busy))
    quiet = counts < QUIET_SHARE * usual
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2):
        if begin == 0 or end == len(counts):
            continue  # it may be the load's own beginning or end
        before = _lacking(counts, begin - 1, usual)
        after = _lacking(counts, end, usual)
        yield Stall(
            at_s=(begin - before) * window_s,
            length_s=(end - begin + before + after) * window_s,
            cause=None,
        )


def _lacking(counts: Logs, window: int, usual: float) -> float:
    """Give the share of a window that has no responses; none where a queue is worked off in it."""
    share = 1 - float(counts[window]) / usual
    return share if share > -BURST else 0.0


def _cause_of(stall: Stall, record: LongLookRecord) -> StallCause | None:
    """Name who else was at it for at least half of the stall, or None: the servers themselves.

    Several causes may have come together; then it is the one that took most.
    """
    seen = _others(stall, record)
    if sum(seen.values()) < EXCUSING_SHARE * stall.length_s:
        return None
    return max(seen, key=seen.__getitem__)


def _others(stall: Stall, record: LongLookRecord) -> dict[StallCause, float]:
    """Give for how long of a stall something else than the servers can have stopped responses."""
    begin_s, end_s = stall.at_s, stall.at_s + stall.length_s
    paused_s = sum(
        max(0.0, min(end_s, pause.at_s + pause.length_s) - max(begin_s, pause.at_s))
        for pause in record.client_pauses
    )
    samples = record.samples
    if len(samples) < 2:
        return {"client": paused_s}
    # Where webdyno itself had no CPU for long, the whole machine stood still.
    gaps_s = [b.at_s - a.at_s for a, b in pairwise(samples) if _meet(a, b, begin_s, end_s)]
    gap_s = max(gaps_s, default=0.0)
    gap_s = gap_s if gap_s > LONG_GAP * record.window_s else 0.0

    def lasted_s(of: Callable[[ServerSample], float]) -> float:
        return max(during(samples, begin_s, end_s, of), 0.0)

    def waited(of: Callable[[ServerSample], float]) -> float:
        return _waited_during(samples, begin_s, end_s, of)

    cpus = max(record.server_cpus, 1)
    stopped = [it.stopped for it in samples if begin_s <= it.at_s <= end_s]
    others_s = lasted_s(lambda it: it.busy_s - it.cpu_s) / cpus
    return {
        "client": max(paused_s, gap_s, waited(lambda it: it.client_waited_s)),
        "stopped": stall.length_s * sum(stopped) / len(stopped) if stopped else 0.0,
        "hypervisor": lasted_s(lambda it: it.stolen_s) / cpus,
        # Servers that sleep don't mind who has their CPUs.
        "other-programs": min(others_s, waited(lambda it: it.waited_s)),
    }


def _meet(a: ServerSample, b: ServerSample, begin_s: float, end_s: float) -> bool:
    return a.at_s < end_s and b.at_s > begin_s


def _waited_during(
    samples: Sequence[ServerSample],
    begin_s: float,
    end_s: float,
    of: Callable[[ServerSample], float],
) -> float:
    """Give how much of a waiting for CPUs lies between two moments.

    The kernel counts a wait when it ends: what is more than the time since the reading before has
    begun before that.
    """
    total_s = 0.0
    for a, b in pairwise(samples):
        waited_s = max(of(b) - of(a), 0.0)
        span_s = max(b.at_s - a.at_s, waited_s)
        within_s = min(end_s, b.at_s) - max(begin_s, b.at_s - span_s)
        if within_s > 0:
            total_s += waited_s * within_s / span_s
    return total_s


def sum_up(own: Sequence[Stall], looked_s: float, window_s: float) -> Stalls:
    """Estimate how long the servers' stalls are, how often they come, and their share of the time.

    Few stalls are a Poisson count (Garwood, "Fiducial limits for the Poisson distribution",
    Biometrika 1936). From three on the gaps between them tell more: their mean, with Student's t
    of its logarithm; where they scatter as much as chance, both say the same.
    """
    n, length_s = len(own), sum(stall.length_s for stall in own) / len(own)
    looked_s = max(looked_s, n * length_s)
    low, high = _poisson(n)
    share = Interval(
        low=low * length_s / looked_s,
        estimate=n * length_s / looked_s,
        high=min(high * length_s / looked_s, 1.0),
        confidence=CONFIDENCE,
    )
    gaps = np.diff([stall.at_s for stall in own])
    if len(gaps) < REGULAR_GAPS:
        return Stalls(count=n, length_s=length_s, every_s=None, share=share)
    every, lengths = np.array(gaps), np.array([stall.length_s for stall in own])
    of_gaps, of_lengths = (_relative_error(it, window_s * EDGE_ERROR) for it in (every, lengths))
    regular = _around(length_s / float(every.mean()), (of_gaps**2 + of_lengths**2) ** 0.5, n - 1)
    tells_more = regular.high / regular.low < share.high / share.low
    return Stalls(
        count=n,
        length_s=length_s,
        every_s=_around(float(every.mean()), of_gaps, n - 1),
        share=regular.model_copy(update={"high": min(regular.high, 1.0)}) if tells_more else share,
    )


def _poisson(n: int) -> tuple[float, float]:
    """Give the interval of the mean of a Poisson count."""
    tail = (1 - CONFIDENCE) / 2
    low = float(chdtri(2 * n, 1 - tail)) / 2 if n else 0.0
    return low, float(chdtri(2 * n + 2, tail)) / 2


def _relative_error(values: Logs, least: float) -> float:
    """Give the standard error of a mean as a share of it; single values are off by `least`."""
    spread = max(float(values.std(ddof=1)), least)
    return float(spread / len(values) ** 0.5 / float(values.mean()))


def _around(centre: float, relative_error: float, n: int) -> Interval:
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * relative_error
    factor = exp(min(half, LARGEST_LOG))
    return Interval(low=centre / factor, estimate=centre, high=centre * factor)


def _drifts(
    record: LongLookRecord, counts: Logs, window_s: float, stalls: Sequence[Stall]
) -> Iterator[Drift]:
    """Give what has another level at the end than at the beginning.

    In parts of the stretch, without stalls and what others took part in; only where the change is
    beyond 5 % and beyond four standard errors, by how far and how long parts stay off their level.
    """
    parts = min(BATCHES, len(counts) // 2)
    if parts < BATCHES:
        return
    size = len(counts) // parts
    part_s = size * window_s
    kept = _undisturbed(record, len(counts), window_s)
    for stall in stalls:
        first = max(int(stall.at_s / window_s) - 1, 0)
        last = int((stall.at_s + stall.length_s) / window_s) + 2
        kept[first:last] = False
    at, rates, work = list[int](), list[float](), list[float]()
    for part in range(parts):
        window = slice(part * size, (part + 1) * size)
        windows, responses = int(kept[window].sum()), float(counts[window][kept[window]].sum())
        if windows < size / 2 or not responses:
            continue
        at.append(part)
        rates.append(log(responses / windows))
        cpu_s = _during_windows(record, part * part_s, (part + 1) * part_s)
        if cpu_s > 0:
            work.append(log(cpu_s / float(counts[window].sum())))
    if len(at) < BATCHES / 2:
        return
    begins_s = [part * part_s for part in at]
    if record.load.loop == "closed" and (found := _change("rate_rps", rates, begins_s)):
        yield found
    if len(work) == len(at) and (found := _change("server_cpu_us", work, begins_s)):
        yield found


def _undisturbed(record: LongLookRecord, windows: int, window_s: float) -> NDArray[np.bool_]:
    """Tell in which windows the servers had their CPUs: what others take is no drift."""
    kept = np.ones(windows, dtype=bool)
    if len(record.samples) < 2:
        return kept
    edges_s = np.arange(windows + 1) * window_s
    at_s = [it.at_s for it in record.samples]

    def taken(of: Callable[[ServerSample], float]) -> Logs:
        return np.diff(np.interp(edges_s, at_s, [of(it) for it in record.samples]))

    others = np.minimum(taken(lambda it: it.busy_s - it.cpu_s), taken(lambda it: it.waited_s))
    most_s = DISTURBED_SHARE * window_s * max(record.server_cpus, 1)
    return np.asarray(taken(lambda it: it.stolen_s) + others <= most_s)


def _during_windows(record: LongLookRecord, begin_s: float, end_s: float) -> float:
    if len(record.samples) < 2:
        return 0.0
    return during(record.samples, begin_s, end_s, lambda it: it.cpu_s)


def _change(metric: str, values: Sequence[float], begins_s: Sequence[float]) -> Drift | None:
    """Compare the last level with the first one, if they differ beyond noise and its memory."""
    levels = np.array(values)
    apart = np.abs(np.diff(levels))
    noise = max(MAD_TO_SD * float(np.median(apart)) / 2**0.5, SMALLEST_NOISE)
    at = change_points(levels, DRIFT_PENALTY * noise**2 * log(len(levels)))
    if not at:
        return None
    first, last = levels[: at[0]], levels[at[-1] :]
    if min(len(first), len(last)) < 2:
        return None
    change = float(last.mean() - first.mean())
    spread = max(noise, float(first.std(ddof=1)), float(last.std(ddof=1)))
    memory = _memory(levels)
    error = spread * (memory / len(first) + memory / len(last)) ** 0.5
    if abs(change) < max(SMALLEST_DRIFT, DRIFT_SDS * error):
        return None
    half = float(stdtrit(len(first) + len(last) - 2, (1 + CONFIDENCE) / 2)) * error
    return Drift(
        metric="rate_rps" if metric == "rate_rps" else "server_cpu_us",
        change=Interval(low=exp(change - half), estimate=exp(change), high=exp(change + half)),
        at_s=begins_s[at[0]] if len(at) == 1 else None,
    )


def _memory(levels: Logs) -> float:
    """Give for how many parts noise remembers, by what is left when the one best step is taken out.

    More steps would take out the memory itself: slow noise looks like many of them.
    """
    rests = [
        np.concatenate([levels[:cut] - levels[:cut].mean(), levels[cut:] - levels[cut:].mean()])
        for cut in range(2, len(levels) - 1)
    ]
    rest = min(rests, key=lambda it: float(it @ it))
    left = float(rest[1:] @ rest[:-1]) / max(float(rest @ rest), TINY)
    alike = min(max(left + HIDDEN_MEMORY * (1 - left), 0.0), MOST_ALIKE)
    return (1 + alike) / (1 - alike)
