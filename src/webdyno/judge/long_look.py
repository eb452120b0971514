"""What one long stretch of load on a variant shows that short slots can't.

Stalls, slow stretches, drifts of throughput or CPU time per request, memory and open files that go
on growing, and requests that fail.

One variant at a time: nothing here sees a difference between variants.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

from webdyno.judge.drifts import drifts_in
from webdyno.judge.failing import failing_in, while_it_served
from webdyno.judge.growth import FEWEST_READINGS, memory_growth, more_open
from webdyno.judge.how_often import sum_up
from webdyno.judge.look_course import course_of, slopes_of
from webdyno.judge.look_parts import (
    all_times,
    breaks,
    length_s,
    stretches,
    trial_of_all,
    with_begins,
)
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
    served = _Served.of(whole)
    found, slow = served.stalls(), served.slow()
    theirs = own(found)
    excused = [stall for stall in found if stall.cause is not None]
    window_s = max(windows_of(record).length_s for record in served.records)
    looked_s = sum(map(length_s, served.records)) - sum(stall.length_s for stall in excused)
    longest, without = served.longest()
    times, drifts = all_times(parts), drifts_in(longest, without)
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
    served = _Served.of(stretches(parts))
    return own(served.stalls()) or [it.as_stall() for it in served.slow()]


class _Served(NamedTuple):
    """The stretches of a look, each as long as the servers served, and what was found in each."""

    records: list[LongLookRecord]
    stalls_in: list[list[Stall]]
    slow_in: list[list[SlowStretch]]

    @classmethod
    def of(cls, whole: Sequence[LongLookRecord]) -> Self:
        """Look for stalls, and for slow stretches between them."""
        records = [while_it_served(it) for it in whole]
        stalls = [stalls_in(it) for it in records]
        return cls(records, stalls, list(map(slow_in, records, stalls)))

    def stalls(self) -> list[Stall]:
        """Give all stalls, when they were in the whole, and who caused each."""
        return with_causes(self.records, self.stalls_in)

    def slow(self) -> list[SlowStretch]:
        """Give all slow stretches, when they were in the whole."""
        return [
            it._replace(at_s=it.at_s + begin_s)
            for (begin_s, _), slow in zip(with_begins(self.records), self.slow_in, strict=True)
            for it in slow
        ]

    def longest(self) -> tuple[LongLookRecord, list[Stall]]:
        """Give the longest stretch, and where the load was not as usual in it."""
        at = max(range(len(self.records)), key=lambda at: length_s(self.records[at]))
        return self.records[at], [*self.stalls_in[at], *(it.as_stall() for it in self.slow_in[at])]


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


def _failing(whole: Sequence[LongLookRecord]) -> list[Failing]:
    return [
        it.replace(at_s=it.at_s + begin_s)
        for begin_s, record in with_begins(whole)
        for it in failing_in(record)
    ]
