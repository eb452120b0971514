"""Stretches of time in which a variant answers much slower than usual, and doesn't stand still.

A cache that expires all at once, a checkpoint, a compaction beside the work. In a closed loop that
is less throughput for a while; parts of a quarter of a second, of the usual throughput by their
median. A stretch has at least two parts in a row below three quarters of it, and below five
standard deviations by the scatter of parts, so that noise alone makes none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from webdyno.judge.interval import Logs
from webdyno.judge.look_parts import length_s
from webdyno.judge.look_windows import windows_of
from webdyno.judge.stall_causes import EXCUSING_SHARE, Others
from webdyno.judge.steady import MAD_TO_SD
from webdyno.model.long_look import Stall
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


def slow_in(record: LongLookRecord, stalls: Sequence[Stall]) -> list[SlowStretch]:
    """Give when the servers were much slower than usual in a stretch, by their own doing."""
    if record.load.loop != "closed":
        return []
    counts, window_s = windows_of(record)
    found = slow_stretches(counts, window_s, [*stalls, *record.client_pauses])
    if not found:
        return []
    others, whole_s = Others(record), length_s(record)
    always_s = others.took_s(0.0, whole_s)

    def slowed_by_others(it: SlowStretch) -> bool:
        """Whether half of what was lost was taken by others, beyond what they always took."""
        took_s, share = others.took_s(it.at_s, it.length_s), it.length_s / whole_s
        more_s = sum(max(took_s[cause] - always_s[cause] * share, 0.0) for cause in took_s)
        return more_s >= EXCUSING_SHARE * (1 - it.level) * it.length_s

    return [it for it in found if not slowed_by_others(it)]


def slow_stretches(counts: Logs, window_s: float, without: Sequence[Stall]) -> list[SlowStretch]:
    """Find slow stretches that begin and end within the load, apart from stalls."""
    size = max(round(PART_S / window_s), 1)
    parts, part_s = _parts(counts, size), size * window_s
    if len(parts) < FEWEST_PARTS:
        return []
    looked_at = np.ones(len(parts), dtype=bool)
    for stall in without:
        first, last = stall.at_s - window_s, stall.at_s + stall.length_s + window_s
        looked_at[max(int(first / part_s), 0) : int(last / part_s) + 1] = False
    usual = float(np.median(parts[looked_at])) if looked_at.any() else 0.0
    if usual <= 0:
        return []
    logs = np.log(np.maximum(parts, 0.5) / usual)
    spread = MAD_TO_SD * float(np.median(np.abs(logs[looked_at])))
    is_slow = looked_at & (logs < min(float(np.log(SLOW_LEVEL)), -SLOW_SDS * spread))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_slow, [False]]).astype(np.int8)))
    return [
        _stretch(parts / usual, int(begin), int(end), part_s)
        for begin, end in edges.reshape(-1, 2)
        if end - begin >= IN_A_ROW and begin > 0 and end < len(parts)
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
