"""When requests come: arrivals, bursts, sessions, and the log's own timetable."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from webdyno.model.load import MOST_REPLAYED, Replay
from webdyno.model.mistake import Mistake
from webdyno.model.workload import Arrivals, Sessions, Spread
from webdyno.workload.log import Floats, Log, Whole
from webdyno.workload.traffic import Mix

SESSION_ENDS_S = 1_800.0
"""A client that says nothing for half an hour has gone: the web's convention (Catledge and Pitkow
1995 found 25.5 minutes)."""
WINDOWS_S: dict[Literal["1s", "10s", "60s"], int] = {"1s": 1, "10s": 10, "60s": 60}
FEWEST_WINDOWS = 20
MOST_WINDOWS = 20_000_000
HOUR_S = 3600


def spread_of(values: Floats | Whole) -> Spread:
    """Give mean and percentiles."""
    p50, p90, p99 = (float(it) for it in np.percentile(values, [50, 90, 99]))
    return Spread(mean=float(values.mean()), p50=p50, p90=p90, p99=p99)


def arrivals(time_s: Floats) -> Arrivals:
    """Say when requests came; times are in order."""
    span_s = float(time_s[-1] - time_s[0])
    hours = np.bincount((time_s // HOUR_S).astype(np.int64) % 24, minlength=24) / len(time_s)
    windows = {name: dispersion(time_s, length_s) for name, length_s in WINDOWS_S.items()}
    return Arrivals(
        span_s=span_s,
        rate_per_s=(len(time_s) - 1) / span_s if span_s > 0 else 0.0,
        hours=[min(float(it), 1.0) for it in hours],
        dispersion={name: value for name, value in windows.items() if value is not None},
    )


def dispersion(time_s: Floats, window_s: float) -> float | None:
    """Give the index of dispersion for counts (Cox and Lewis 1966): variance over mean.

    None for fewer than 20 full windows. Rates that change over the day raise it, with long windows
    most.
    """
    windows = int((time_s[-1] - time_s[0]) // window_s)
    if not FEWEST_WINDOWS <= windows <= MOST_WINDOWS:
        return None
    which = ((time_s - time_s[0]) // window_s).astype(np.int64)
    counts = np.bincount(which[which < windows], minlength=windows)
    return float(counts.var(ddof=1) / counts.mean())


def sessions(time_s: Floats, client_id: Whole) -> tuple[Sessions, Whole]:
    """Say what clients do in one go, and give the requests of each session."""
    order = np.lexsort((time_s, client_id))
    clients, times = client_id[order], time_s[order]
    pauses = np.diff(times)
    within = (clients[1:] == clients[:-1]) & (pauses <= SESSION_ENDS_S)
    begins = np.flatnonzero(np.concatenate(([True], ~within)))
    lengths = np.diff(np.concatenate((begins, [len(times)])))
    found = Sessions(
        clients=len(np.unique(clients)),
        sessions=len(lengths),
        requests=spread_of(lengths),
        pause_s=spread_of(pauses[within]) if within.any() else None,
    )
    return found, lengths


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
