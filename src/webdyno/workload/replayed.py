"""A log's own timetable in the terms of the requests that a load makes."""

from collections.abc import Iterator

import numpy as np

from webdyno.model.mistake import Mistake
from webdyno.model.replay import MOST_REPLAYED, Replay
from webdyno.workload.log import Floats, Log, Whole
from webdyno.workload.traffic import Mix


def replay_of(log: Log, chosen: Mix) -> Replay:
    """Give when each request of a log came, and which of the load's requests it is.

    What the load has no request for is replaced by the one that stands for it, of the nearest rank.
    Raise Mistake for a log that can't be replayed.
    """
    if len(log) > MOST_REPLAYED:
        raise Mistake(
            f"--replay: {len(log):,} requests are more than {MOST_REPLAYED:,}; choose some hours "
            "with --from and --to"
        )
    if not log.time_s[-1] > log.time_s[0]:
        raise Mistake("--replay: all requests came at the same time")
    times_s = np.fromiter(_spread_over_seconds(log.time_s), float, len(log))
    return Replay(
        (times_s - times_s[0]).tolist(), _standing_for(log, chosen)[log.asked_id].tolist()
    )


def _standing_for(log: Log, chosen: Mix) -> Whole:
    """Give, by number of what was asked, the number of the load's request."""
    counts = np.bincount(log.asked_id, minlength=len(log.asked))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    kept = rank[chosen.ids]  # ascending: requests are in the order of their ranks
    after = np.searchsorted(kept, rank).clip(0, len(kept) - 1)
    before = (after - 1).clip(0)
    return np.where(abs(kept[before] - rank) < abs(kept[after] - rank), before, after)


def _spread_over_seconds(times_s: Floats) -> Iterator[float]:
    """Spread requests of one whole second evenly over it, where a log knows no parts of seconds."""
    if (times_s % 1).any():
        yield from times_s
        return
    for second, many in zip(*np.unique(times_s, return_counts=True), strict=True):
        yield from second + np.arange(many) / many
