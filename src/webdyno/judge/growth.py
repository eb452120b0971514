"""What goes on growing through a long stretch of load: memory, and open files and connections.

By the least that was held in each part. Collected heaps rise and fall, and so do connections; what
they fall back to is what leaks. The first half is left out: there buffers, caches and just-in-time
compilers take what they need once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from webdyno.judge.interval import TINY, Logs
from webdyno.model.interval import Interval
from webdyno.model.long_look import Growth, MoreOpen, ServerSample
from webdyno.model.records import LongLookRecord

PARTS = 6
FEWEST_READINGS = 4 * PARTS
SMALLEST_BYTES = 512 * 1024
"""Over the second half: allocators and page tables take as much by chance."""
SMALLEST_DESCRIPTORS = 16
SMALLEST_SHARE = 0.01
SLOWING = 0.85
"""Of the rise of the parts before, that of the last: a leak goes on as before, but caches
and heaps that fill rise ever less."""
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
    later = at_s >= at_s[-1] / 2
    parts = np.array_split(np.flatnonzero(later), PARTS)
    lowest = [part[held[part].argmin()] for part in parts]
    least, away = held[lowest], at_s[lowest] - at_s[lowest].mean()
    slope = float(away @ least) / float(away @ away)
    rest = least - least.mean() - slope * away
    freedom = PARTS - 2
    error = (float(rest @ rest) / freedom / float(away @ away)) ** 0.5
    quantile = float(stdtrit(freedom, 1 - ALPHA / 2))
    grown = slope * (at_s[-1] - at_s[0]) / 2
    if slope - quantile * error <= 0 or np.any(np.diff(least) < 0):
        return None
    if grown < max(smallest, SMALLEST_SHARE * float(least[0])):
        return None
    if _slows_down(record, at_s[lowest], least):
        return None
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    rate = sum(responses) / (len(responses) * record.window_s)
    per_s = Interval(low=slope - half, estimate=slope, high=slope + half)
    per_request = Interval(
        low=per_s.low / rate, estimate=per_s.estimate / rate, high=per_s.high / rate
    )
    return _Rise(per_s, per_request)


def _slows_down(record: LongLookRecord, at_s: Logs, least: Logs) -> bool:
    """Tell whether it rises less and less, as what fills does: by time, and by responses."""
    windows_s = np.arange(len(record.responses) + 1) * record.window_s
    answered = np.interp(at_s, windows_s, np.cumsum([0, *record.responses]))
    return all(_rises_less(axis, least) for axis in (at_s, answered))


def _rises_less(axis: Logs, least: Logs) -> bool:
    half = len(least) // 2
    ends = (0, half - 1), (half, len(least) - 1)
    spans = [max(float(axis[last] - axis[first]), TINY) for first, last in ends]
    earlier, later = (
        float(least[last] - least[first]) / span
        for (first, last), span in zip(ends, spans, strict=True)
    )
    return later < SLOWING * earlier
