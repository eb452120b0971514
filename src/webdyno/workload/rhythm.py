"""When requests come: arrivals, bursts, sessions."""

from typing import Literal

import numpy as np

from webdyno.model.workload import Arrivals, Sessions, Spread
from webdyno.workload.log import Floats, Whole

SESSION_ENDS_S = 1_800.0
"""A client that says nothing for half an hour has gone: the web's convention (Catledge and Pitkow
1995 found 25.5 minutes)."""
WINDOWS_S: dict[Literal["1s", "10s", "60s"], int] = {"1s": 1, "10s": 10, "60s": 60}
FEWEST_WINDOWS = 20
MOST_WINDOWS = 20_000_000
HOUR_S = 3600


def spread(values: Floats | Whole) -> Spread:
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
        requests=spread(lengths),
        pause_s=spread(pauses[within]) if within.any() else None,
    )
    return found, lengths
