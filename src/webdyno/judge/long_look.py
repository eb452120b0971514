"""What one long stretch of load on a variant shows that short slots can't.

Stalls, slow stretches, drifts of throughput or CPU time per request, memory and open files that go
on growing, and requests that fail.

One variant at a time: nothing here sees a difference between variants.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from webdyno.judge.drifts import drifts_in
from webdyno.judge.failing import failing_in, while_it_served
from webdyno.judge.growth import FEWEST_READINGS, memory_growth, more_open
from webdyno.judge.how_often import sum_up
from webdyno.judge.look_course import course_of, slopes_of
from webdyno.judge.look_parts import all_times, breaks, length_s, stretches, trial_of_all
from webdyno.judge.look_windows import windows_of
from webdyno.judge.slow import SlowStretch, slow_in
from webdyno.judge.stalls import FEWEST_WINDOWS, own, stalls_in, with_causes
from webdyno.model.long_look import Drift, Failing, LongLook, Slow, Stall, Unseen
from webdyno.model.records import LongLookRecord


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
    found, slow = with_causes(joined), _slow_in(joined)
    theirs = own(found)
    excused = [stall for stall in found if stall.cause is not None]
    window_s = max(windows_of(record).length_s for record in joined)
    looked_s = sum(map(length_s, joined)) - sum(stall.length_s for stall in excused)
    times, drifts = all_times(parts), _drifts(longest)
    course = course_of(parts, theirs) if len(parts) > 1 else []
    return LongLook(
        arm=parts[0].arm,
        looked_s=max(looked_s, 0.0),
        shortest_s=2 * window_s,
        ended_by=parts[-1].ended_by,
        breaks=breaks(parts),
        parts=course,
        slopes=slopes_of(course),
        stalls=sum_up(theirs, looked_s, window_s) if theirs else None,
        excused=excused,
        slow=_slow(slow, looked_s, window_s),
        unseen=list(_unseen(longest, drifts)),
        drifts=drifts or [],
        growth=memory_growth(longest),
        more_open=more_open(longest),
        failing=_failing(whole),
        died=parts[-1].died,
        longest_response_s=times.max / 1e6 if times.max is not None else None,
        trial=trial_of_all(parts),
        times=times.histogram,
    )


def seen_in(*parts: LongLookRecord) -> list[Stall]:
    """Give what a look goes on for, to see how often it comes: stalls, or slow stretches."""
    joined = [while_it_served(it) for it in stretches(parts)]
    return own(with_causes(joined)) or [it.as_stall() for it in _slow_in(joined)]


def _slow_in(joined: Sequence[LongLookRecord]) -> list[SlowStretch]:
    found, begin_s = list[SlowStretch](), 0.0
    for record in joined:
        slow = slow_in(record, stalls_in(record))
        found += [it._replace(at_s=it.at_s + begin_s) for it in slow]
        begin_s += length_s(record)
    return found


def _slow(found: Sequence[SlowStretch], looked_s: float, window_s: float) -> Slow | None:
    if not found:
        return None
    return Slow(
        level=sum(it.level for it in found) / len(found),
        stretches=sum_up([it.as_stall() for it in found], looked_s, window_s),
    )


def _unseen(record: LongLookRecord, drifts: list[Drift] | None) -> Iterator[Unseen]:
    """Name what a stretch can't show, because it is too short or too little was answered in it."""
    if len(windows_of(record).counts) < FEWEST_WINDOWS:
        yield "stalls"
    if drifts is None:
        yield "drift"
    if sum(it.memory_bytes is not None for it in record.samples) < FEWEST_READINGS:
        yield "leak"


def _drifts(record: LongLookRecord) -> list[Drift] | None:
    """Find drifts in what is left between stalls and slow stretches."""
    stalls = stalls_in(record)
    slow = [it.as_stall() for it in slow_in(record, stalls)]
    return drifts_in(record, [*stalls, *slow])


def _failing(whole: Sequence[LongLookRecord]) -> list[Failing]:
    found, begin_s = list[Failing](), 0.0
    for record in whole:
        failing = failing_in(record)
        found += [it.replace(at_s=it.at_s + begin_s) for it in failing]
        begin_s += length_s(record)
    return found
