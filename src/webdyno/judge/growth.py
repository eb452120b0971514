"""What goes on growing through a long stretch of load: memory, and open files and connections.

By the least that was held in each part. Collected heaps rise and fall, and so do connections; what
they fall back to is what leaks. The first half is left out: there buffers, caches and just-in-time
compilers take what they need once. Of it the second quarter tells whether the rise slows down, as
that of what fills does: then no slope goes on.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from webdyno.judge.interval import Logs, fitted_line
from webdyno.model.interval import Interval
from webdyno.model.long_look import Growth, MoreOpen, ServerSample
from webdyno.model.records import LongLookRecord

PARTS, PARTS_BEFORE = 6, 3
"""Of the second half of the stretch, and of the quarter before it."""
FEWEST_READINGS = 4 * PARTS
SMALLEST_BYTES = 512 * 1024
"""Over the second half: allocators and page tables take as much by chance."""
SMALLEST_DESCRIPTORS = 16
SMALLEST_SHARE = 0.01
SLOWING = 0.9
"""Of the slope of the first of these parts, that of the last: a leak goes on as before."""
ALPHA = 0.01
CONFIDENCE = 0.95


class _Rise(NamedTuple):
    per_s: Interval
    per_request: Interval


def memory_growth(record: LongLookRecord) -> Growth | None:
    """Tell whether memory goes on growing, and how fast."""
    rise = _rise(record, lambda it: it.memory_bytes, SMALLEST_BYTES)
    return rise and Growth(bytes_per_s=rise.per_s, bytes_per_request=rise.per_request)


def more_open(record: LongLookRecord) -> MoreOpen | None:
    """Tell whether open files and connections go on becoming more, and how fast."""
    rise = _rise(record, lambda it: it.descriptors, SMALLEST_DESCRIPTORS)
    return rise and MoreOpen(per_s=rise.per_s, per_request=rise.per_request)


def _rise(
    record: LongLookRecord, of: Callable[[ServerSample], int | None], smallest: float
) -> _Rise | None:
    read = [(it.at_s, value) for it in record.samples if (value := of(it)) is not None]
    responses = record.responses[len(record.responses) // 2 :]
    if len(read) < FEWEST_READINGS or not any(responses):
        return None
    at_s = np.array([at for at, _ in read])
    held = np.array([held for _, held in read], dtype=float)
    lowest = _lowest(at_s, held, at_s[-1] / 2, at_s[-1], PARTS)
    if len(lowest) < PARTS:
        return None
    least = held[lowest]
    line = fitted_line(at_s[lowest], least)
    grown = line.slope * (at_s[-1] - at_s[0]) / 2
    if line.slope - line.half_width(1 - ALPHA) <= 0 or np.any(np.diff(least) < 0):
        return None
    if grown < max(smallest, SMALLEST_SHARE * float(least[0])):
        return None
    lowest = [*_lowest(at_s, held, at_s[-1] / 4, at_s[-1] / 2, PARTS_BEFORE), *lowest]
    if _slows_down(record, at_s[lowest], held[lowest]):
        return None
    rate = sum(responses) / (len(responses) * record.window_s)
    per_s = line.interval(CONFIDENCE)
    return _Rise(per_s, per_request=per_s.mapped(lambda grown: grown / rate))


def _lowest(at_s: Logs, held: Logs, begin_s: float, end_s: float, parts: int) -> list[int]:
    """Give where the least was held in each part of a time."""
    within = np.flatnonzero((at_s >= begin_s) & ((at_s < end_s) | (end_s == at_s[-1])))
    return [int(it[held[it].argmin()]) for it in np.array_split(within, parts) if len(it)]


def _slows_down(record: LongLookRecord, at_s: Logs, least: Logs) -> bool:
    """Tell whether it rises less and less, as what fills does: by time, and by responses."""
    windows_s = np.arange(len(record.responses) + 1) * record.window_s
    answered = np.interp(at_s, windows_s, np.cumsum([0, *record.responses]))
    return all(_rises_less(axis, least) for axis in (at_s, answered))


def _rises_less(axis: Logs, least: Logs) -> bool:
    middle = len(least) // 2
    earlier = fitted_line(axis[: middle + 1], least[: middle + 1]).slope
    return fitted_line(axis[middle:], least[middle:]).slope < SLOWING * earlier
