"""Stalls in a long look: windows in which next to nothing was answered, and whose they are.

A stall is the servers' own unless the stretch's own evidence names another cause for at least half
of its length.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from webdyno.judge.failing import failing_in, is_failing
from webdyno.judge.interval import Logs
from webdyno.judge.look_parts import moved, stretches, with_begins
from webdyno.judge.look_windows import Windows, windows_of
from webdyno.judge.stall_causes import Others
from webdyno.model.long_look import Stall
from webdyno.model.records import LongLookRecord

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


def stalls_of(*parts: LongLookRecord) -> list[Stall]:
    """Give the stalls in a look, those that the servers didn't cause left out."""
    return own(all_stalls_of(*parts))


def all_stalls_of(*parts: LongLookRecord) -> list[Stall]:
    """Give the stalls in a look, and who caused each."""
    whole = stretches(parts)
    return with_causes(whole, [stalls_in(record) for record in whole])


def own(stalls: Sequence[Stall]) -> list[Stall]:
    """Leave out the stalls that the servers didn't cause."""
    return [stall for stall in stalls if stall.cause is None]


def with_causes(whole: Sequence[LongLookRecord], stalls: Sequence[Sequence[Stall]]) -> list[Stall]:
    """Say who caused each of the stalls in some stretches, and when it was in the whole.

    Nobody can tell who stopped the servers by a signal: once it may be somebody's debugger, again
    and again it is how they work.
    """
    found = list[Stall]()
    for (begin_s, record), mine in zip(with_begins(whole), stalls, strict=True):
        others = Others(record)
        caused = [stall.replace(cause=others.cause_of(stall)) for stall in mine]
        found += moved(caused, begin_s)
    stopped = [stall for stall in found if stall.cause == "stopped"]
    if len(stopped) < STOPS_OF_THEIRS:
        return found
    return [it.replace(cause=None) if it in stopped else it for it in found]


def stalls_in(record: LongLookRecord) -> list[Stall]:
    """Find all stalls in one stretch, whoever caused them; failures are none."""
    failing = failing_in(record)
    return [it for it in _quiet(windows_of(record)) if not is_failing(it, failing)]


def _quiet(windows: Windows) -> Iterator[Stall]:
    """Give the stretches of quiet windows, with what their edges add.

    A stall begins and ends within windows: those at its edges lack as many responses as it took of
    them. In an open loop the window after it has more than usual, which adds nothing.
    """
    counts, window_s = windows
    busy = counts[counts > 0]
    if len(busy) < 2:
        return
    usual = float(np.median(busy))
    quiet = counts < QUIET_SHARE * usual
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2):
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


def _lacking(counts: Logs, window: int, usual: float) -> float:
    """Give the share of a window that has no responses; none where a queue is worked off in it."""
    share = 1 - float(counts[window]) / usual
    return share if share > -BURST else 0.0
