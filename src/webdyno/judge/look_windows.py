"""The responses of a stretch of load, in windows long enough to tell quiet from slow or rare."""

from typing import NamedTuple

import numpy as np

from webdyno.judge.interval import Logs
from webdyno.judge.steady import windows_to_join
from webdyno.model.records import LongLookRecord

QUIET_RESPONSES = 5
"""Responses may come in bursts that many response times apart, which isn't a stall."""


class Windows(NamedTuple):
    """How many responses there were in each window, and how long a window is."""

    counts: Logs
    length_s: float


def windows_of(record: LongLookRecord) -> Windows:
    """Join neighbouring windows of a record until they are long enough."""
    joined = _joined(record)
    whole = len(record.responses) // joined * joined
    counts = np.array(record.responses[:whole], dtype=float).reshape(-1, joined).sum(axis=1)
    return Windows(np.asarray(counts), record.window_s * joined)


def _joined(record: LongLookRecord) -> int:
    few = windows_to_join(record.responses)
    slow_s = QUIET_RESPONSES * (record.load.response_time_us.p50 or 0.0) / 1e6
    return max(few, -(-int(slow_s * 1e6) // int(record.window_s * 1e6)), 1)
