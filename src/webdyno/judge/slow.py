"""Stretches of time in which a variant answers much slower than usual, and doesn't stand still.

A cache that expires all at once, a checkpoint, a compaction beside the work. In a closed loop that
is less throughput for a while; parts of a quarter of a second, of the usual throughput by their
median. A stretch has at least two parts in a row below three quarters of it, and below five
standard deviations by the scatter of parts, so that noise alone makes none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webdyno.judge.interval import TINY, Logs
from webdyno.judge.look_windows import windows_of
from webdyno.judge.stall_causes import EXCUSING_SHARE, Others
from webdyno.judge.steady import MAD_TO_SD
from webdyno.model.long_look import Stall, StallCause
from webdyno.model.records import LongLookRecord

PART_S = 0.25
FEWEST_PARTS = 20
SLOW_LEVEL = 0.75
SLOW_SDS = 5.0
IN_A_ROW = 2


class SlowStretch(NamedTuple):
    """When, for how long, and with how much of the usual throughput."""

    at_s: float
    length_s: float
    level: float

    def as_stall(self) -> Stall:
        """Give when and for how long, cause unknown."""
        return Stall(at_s=self.at_s, length_s=self.length_s, cause=None)


class _Course(NamedTuple):
    """Throughput by the part, as a share of the usual one."""

    shares: Logs
    part_s: float
    looked_at: NDArray[np.bool_]


def slow_in(record: LongLookRecord, stalls: Sequence[Stall]) -> list[SlowStretch]:
    """Give when the servers were much slower than usual in a stretch, by their own doing."""
    if record.load.loop != "closed":
        return []
    course = _course(*windows_of(record), [*stalls, *record.client_pauses])
    found = _slow_stretches(course) if course else []
    if not found or not course:
        return []
    others = Others(record)
    usually = _usually_taken(course, others)
    return [it for it in found if not _slowed_by(others, usually, it)]


def _usually_taken(course: _Course, others: Others) -> dict[StallCause, float]:
    """Give by cause which share of the time others take where throughput is the usual one."""
    edges_s: Logs = np.arange(len(course.shares) + 1.0) * course.part_s
    usual = course.looked_at & (course.shares >= 1)
    taken_s = others.take_s(edges_s)
    return {by: float(np.median(it[usual])) / course.part_s for by, it in taken_s.items()}


def _slowed_by(others: Others, usually: dict[StallCause, float], slow: SlowStretch) -> bool:
    """Whether half of what was lost was taken by others, beyond what they usually take."""
    took_s = others.took_s(slow.at_s, slow.length_s)
    more_s = sum(max(took_s[by] - usually.get(by, 0.0) * slow.length_s, 0.0) for by in took_s)
    return more_s >= EXCUSING_SHARE * (1 - slow.level) * slow.length_s


def _course(counts: Logs, window_s: float, without: Sequence[Stall]) -> _Course | None:
    size = max(round(PART_S / window_s), 1)
    parts, part_s = _parts(counts, size), size * window_s
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
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_slow, [False]]).astype(np.int8)))
    return [
        _stretch(shares, int(begin), int(end), part_s)
        for begin, end in edges.reshape(-1, 2)
        if end - begin >= IN_A_ROW and begin > 0 and end < len(shares)
    ]


def _parts(counts: Logs, size: int) -> Logs:
    whole = len(counts) // size * size
    return np.asarray(counts[:whole].reshape(-1, size).sum(axis=1))


def _stretch(shares: Logs, begin: int, end: int, part_s: float) -> SlowStretch:
    """Give a stretch that begins and ends within parts, by how much of the usual they lack."""
    level = float(np.median(shares[begin:end]))
    slow_parts = np.clip((1 - shares[begin - 1 : end + 1]) / (1 - level), 0.0, None)
    return SlowStretch(
        at_s=max(begin + 1 - float(slow_parts[:2].sum()), 0.0) * part_s,
        length_s=float(slow_parts.sum()) * part_s,
        level=level,
    )
