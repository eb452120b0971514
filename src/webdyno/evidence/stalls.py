"""When a variant failed, stalled or got slow in a long look, and whose doing that was.

Stalls are windows in which next to nothing was answered. One is the servers' own unless the
stretch's own evidence names another cause for at least half of its length.

Slow stretches come of a cache that expires all at once, a checkpoint, a compaction next to the
work. In a closed loop that is less throughput for a while; parts of a quarter of a second, of the
usual throughput by their median. A stretch has at least two parts in a row below three quarters of
it, and below five standard deviations by the scatter of parts, so that noise alone makes none.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webdyno.core.looks import Failing, Stall, StallCause
from webdyno.core.records import LongLookRecord
from webdyno.evidence.look_records import (
    LookReadings,
    Windows,
    shift_stalls,
    stretches,
    sums_of,
    windows_of,
    with_begins,
)
from webdyno.statistics.interval import TINY, Logs
from webdyno.statistics.steady import MAD_TO_SD

Counts = NDArray[np.intp]
APART_S = 1.0
"""Failures that are further apart are said of apart; connections are tried again sooner."""
GONE_SHARE = 0.5
"""Servers that fail so many requests to the end serve no more."""
CLIENTS_WORDS = ("no local port left", "cannot assign requested address", "too many open files")
"""By which the load generator says that it can't open a connection: for want of ports, or files."""

EXCUSING_SHARE = 0.5
"""Of a stall's length, for which another cause has to be seen, or else it is the servers' own."""
LONG_GAP = 6
"""Windows between two readings of the servers, which are two windows apart as a rule."""

QUIET_SHARE = 0.05
"""A window is quiet that has less than this share of the usual number of responses."""
FEWEST_WINDOWS = 3
"""A stall is seen between windows that aren't quiet."""
LONG_EDGE = 4
"""Quiet windows in a row at an end of the load, from which on they aren't the load's own doing."""
BURST = 0.5
"""A window with so much more than usual works off the queue of an open loop."""
STOPS_OF_THEIRS = 2
"""Stalls in which the servers were stopped, from which on the stops are their own."""

PART_S = 0.25
"""Of a course, in which slow stretches are sought."""
FEWEST_PARTS = 20
SLOW_LEVEL = 0.75
SLOW_SDS = 5.0
IN_A_ROW = 2


def failing_in(record: LongLookRecord) -> list[Failing]:
    """Return the stretches of time in which requests failed."""
    failing = _failing_windows(record)
    if not len(failing):
        return []
    apart = max(round(APART_S / record.window_s), 1)
    episodes = np.split(failing, np.flatnonzero(np.diff(failing) > apart) + 1)
    why, by_client = _why(record)
    failures = []
    for episode in episodes:
        begin, end = int(episode[0]), int(episode[-1]) + 1
        to_the_end = end + apart >= len(record.responses)
        if to_the_end:
            end = len(record.responses)
        failed = sum(record.failed[begin:end])
        failure = Failing(
            at_s=begin * record.window_s,
            length_s=(end - begin) * record.window_s,
            failed=failed,
            share=failed / (failed + sum(record.responses[begin:end])),
            answered_before=sum(record.responses[:begin]),
            to_the_end=to_the_end,
            said=why,
            by_client=by_client,
        )
        failures.append(failure)
    return failures


def _failing_windows(record: LongLookRecord) -> Counts:
    """Return the windows in which requests failed.

    Where failures are all that came after the last response, nothing was answered any more from
    then on: requests fail only when they time out, seconds later and all at once.
    """
    failing = np.flatnonzero(record.failed[: len(record.responses)])
    answered = np.flatnonzero(record.responses)
    silent_from = int(answered[-1]) + 1 if len(answered) else 0
    if not np.any(failing >= silent_from):
        return failing
    return np.union1d(failing, np.arange(silent_from, len(record.responses)))


def _why(record: LongLookRecord) -> tuple[str, bool]:
    samples = record.load.all_of_it.failure_samples
    own = [sample for sample in samples if any(words in sample.lower() for words in CLIENTS_WORDS)]
    if own:
        return own[0], True
    return record.said or next(iter(samples), ""), False


def gone(failing: Sequence[Failing]) -> Failing | None:
    """Return the stretch in which requests failed to the end, if most did."""
    return next(
        (failure for failure in failing if failure.to_the_end and failure.share >= GONE_SHARE), None
    )


def while_it_served(record: LongLookRecord) -> LongLookRecord:
    """Return what was seen before most requests failed to the end; all where they didn't."""
    end = gone(failing_in(record))
    if end is None:
        return record
    windows = round(end.at_s / record.window_s)
    return record.replace(
        responses=record.responses[:windows],
        failed=record.failed[:windows],
        samples=[sample for sample in record.samples if sample.at_s <= end.at_s],
        client_pauses=[pause for pause in record.client_pauses if pause.at_s < end.at_s],
    )


def _common_s(stall: Stall, other: Stall | Failing) -> float:
    end_s = min(stall.at_s + stall.length_s, other.at_s + other.length_s)
    return max(0.0, end_s - max(stall.at_s, other.at_s))


class Others:
    """What the load generator, the hypervisor and other programs did during a record."""

    def __init__(self, record: LongLookRecord) -> None:
        self._record = record
        self._cpus = max(record.server_cpus, 1)
        self._read = LookReadings.of(record.samples)

    def cause_of(self, stall: Stall) -> StallCause | None:
        """Name who else was at it for at least half of the stall, or None: the servers themselves.

        Several causes may have come together; then it is the one that took most.
        """
        took_s = self.took_s(stall)
        if sum(took_s.values()) < EXCUSING_SHARE * stall.length_s:
            return None
        return max(took_s, key=took_s.__getitem__)

    def took_s(self, stall: Stall) -> dict[StallCause, float]:
        """Return for how long of it each of them can have kept the servers from answering."""
        begin_s, end_s, read = stall.at_s, stall.at_s + stall.length_s, self._read
        paused_s = sum(_common_s(stall, pause) for pause in self._record.client_pauses)
        if not read.suffice:
            return {"client": paused_s}
        # Where webdyno itself had no CPU for long, the whole machine stalled.
        gap_s = read.longest_gap_s(begin_s, end_s)
        gap_s = gap_s if gap_s > LONG_GAP * self._record.window_s else 0.0
        client_waited_s = read.waited_during(read.client_waited_s, begin_s, end_s)
        others_s = max(read.during(read.others_s, begin_s, end_s), 0.0) / self._cpus
        stolen_s = max(read.during(read.stolen_s, begin_s, end_s), 0.0) / self._cpus
        return {
            "client": max(paused_s, gap_s, client_waited_s),
            "stopped": stall.length_s * read.stopped_share(begin_s, end_s),
            "hypervisor": stolen_s,
            # Servers that sleep don't mind who has their CPUs.
            "other-programs": min(others_s, read.waited_during(read.waited_s, begin_s, end_s)),
        }

    def take_s(self, edges_s: Logs) -> dict[StallCause, Logs]:
        """Return what each took from each of some moments to the next, with no regard to pauses."""
        read = self._read
        if not read.suffice:
            return {}
        others_s = read.grown(read.others_s, edges_s) / self._cpus
        return {
            "client": read.grown(read.client_waited_s, edges_s),
            "hypervisor": read.grown(read.stolen_s, edges_s) / self._cpus,
            "other-programs": np.minimum(others_s, read.grown(read.waited_s, edges_s)),
        }


def stalls_of(*parts: LongLookRecord) -> list[Stall]:
    """Return the stalls in a look that the servers caused."""
    return own(all_stalls_of(*parts))


def all_stalls_of(*parts: LongLookRecord) -> list[Stall]:
    """Return the stalls in a look, and who caused each."""
    whole = stretches(parts)
    return with_causes(whole, [stalls_in(record) for record in whole])


def own(stalls: Sequence[Stall]) -> list[Stall]:
    """Keep the stalls that the servers caused."""
    return [stall for stall in stalls if stall.cause is None]


def with_causes(whole: Sequence[LongLookRecord], stalls: Sequence[Sequence[Stall]]) -> list[Stall]:
    """Return the stalls of some stretches with their causes and their time in the whole.

    Nobody knows who stopped the servers by a signal: once it may be somebody's debugger, again and
    again it is how they work.
    """
    explained = list[Stall]()
    for (begin_s, record), mine in zip(with_begins(whole), stalls, strict=True):
        others = Others(record)
        caused = [stall.replace(cause=others.cause_of(stall)) for stall in mine]
        explained += shift_stalls(caused, begin_s)
    stopped = [stall for stall in explained if stall.cause == "stopped"]
    if len(stopped) < STOPS_OF_THEIRS:
        return explained
    return [stall.replace(cause=None) if stall in stopped else stall for stall in explained]


def stalls_in(record: LongLookRecord) -> list[Stall]:
    """Find all stalls in one stretch, whoever caused them; failures are none."""
    failing = failing_in(record)

    def failing_s(stall: Stall) -> float:
        return sum(_common_s(stall, failure) for failure in failing)

    quiet = _quiet(windows_of(record))
    return [stall for stall in quiet if failing_s(stall) <= stall.length_s / 2]


def _quiet(windows: Windows) -> Iterator[Stall]:
    """Return the stretches of quiet windows, with what their edges add.

    A stall begins and ends within windows: those at its edges lack as many responses as it took of
    them. In an open loop the window after it has more than usual, which adds nothing.
    """
    counts, window_s = windows
    busy = counts[counts > 0]
    if len(busy) < 2:
        return
    usual = float(np.median(busy))
    quiet = counts < QUIET_SHARE * usual
    for begin, end in _in_a_row(quiet):
        at_edge = begin == 0 or end == len(counts)
        if at_edge and end - begin < LONG_EDGE:
            continue  # it may be the load's own beginning or end
        before = _lacking(counts, begin - 1, usual) if begin else 0.0
        after = _lacking(counts, end, usual) if end < len(counts) else 0.0
        yield Stall(
            at_s=(begin - before) * window_s,
            length_s=(end - begin + before + after) * window_s,
            cause=None,
        )


def _in_a_row(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return ((int(begin), int(end)) for begin, end in edges.reshape(-1, 2))


def _lacking(counts: Logs, window: int, usual: float) -> float:
    """Return the share of a window without responses; none where it works off a queue."""
    share = 1 - float(counts[window]) / usual
    return share if share > -BURST else 0.0


class SlowStretch(NamedTuple):
    """When, for how long, and with how much of the usual throughput."""

    at_s: float
    length_s: float
    level: float

    def as_stall(self) -> Stall:
        return Stall(at_s=self.at_s, length_s=self.length_s, cause=None)


class _Course(NamedTuple):
    """Throughput by the part, as a share of the usual one."""

    shares: Logs
    part_s: float
    looked_at: NDArray[np.bool_]


def slow_in(record: LongLookRecord, stalls: Sequence[Stall]) -> list[SlowStretch]:
    """Return when the servers were much slower than usual in a stretch, by their own doing."""
    if record.load.loop != "closed":
        return []
    course = _course(*windows_of(record), [*stalls, *record.client_pauses])
    slow = _slow_stretches(course) if course else []
    if not slow or not course:
        return []
    others, part_s = Others(record), course.part_s
    # By cause: the share of the time that others take where throughput is the usual one.
    taken_s = others.take_s(np.arange(len(course.shares) + 1.0) * part_s)
    usual = course.looked_at & (course.shares >= 1)
    usually = {by: float(np.median(value[usual])) / part_s for by, value in taken_s.items()}
    own_doing = []
    for stretch in slow:
        took_s = others.took_s(stretch.as_stall())
        length_s, lost_s = stretch.length_s, (1 - stretch.level) * stretch.length_s
        more_s = sum(max(took_s[by] - usually.get(by, 0.0) * length_s, 0.0) for by in took_s)
        if more_s < EXCUSING_SHARE * lost_s:
            own_doing.append(stretch)
    return own_doing


def _course(counts: Logs, window_s: float, without: Sequence[Stall]) -> _Course | None:
    size = max(round(PART_S / window_s), 1)
    parts, part_s = sums_of(counts, size), size * window_s
    if len(parts) < FEWEST_PARTS:
        return None
    looked_at = np.ones(len(parts), dtype=bool)
    for stall in without:
        first, last = stall.at_s - window_s, stall.at_s + stall.length_s + window_s
        looked_at[max(int(first / part_s), 0) : int(last / part_s) + 1] = False
    usual = float(np.median(parts[looked_at])) if looked_at.any() else 0.0
    return _Course(parts / usual, part_s, looked_at) if usual > 0 else None


def _slow_stretches(course: _Course) -> list[SlowStretch]:
    shares, part_s, looked_at = course
    logs = np.log(np.maximum(shares, TINY))
    spread = MAD_TO_SD * float(np.median(np.abs(logs[looked_at])))
    is_slow = looked_at & (logs < min(float(np.log(SLOW_LEVEL)), -SLOW_SDS * spread))
    stretches_found = []
    for begin, end in _in_a_row(is_slow):
        if end - begin < IN_A_ROW or begin == 0 or end == len(shares):
            continue
        level = float(np.median(shares[begin:end]))
        # It begins and ends within parts, by how much of the usual they lack.
        slow_parts = np.clip((1 - shares[begin - 1 : end + 1]) / (1 - level), 0.0, None)
        at_s = max(begin + 1 - float(slow_parts[:2].sum()), 0.0) * part_s
        stretches_found.append(SlowStretch(at_s, float(slow_parts.sum()) * part_s, level))
    return stretches_found
