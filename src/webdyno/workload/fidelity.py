"""How well a load agrees with the log that it was made of."""

from bisect import bisect_left
from math import ceil, log, log1p

import numpy as np

from webdyno.model.workload import Agreement, Arrivals, Sessions
from webdyno.workload.log import Floats, Log, Whole
from webdyno.workload.traffic import Mix

LOOKED_AT = 50_000
"""Requests of which distances of re-use are taken."""
SHARES_DIFFER, SIZES_DIFFER, BURSTS_DIFFER, TIMES_DIFFER = 0.1, 0.1, 0.5, 0.25
SEED = 1
FEW_PER_S = 0.2
"""Arrivals this rare can be told apart by a log that knows whole seconds."""
NINE_IN_TEN = 0.9


def fidelity(
    source: Log,
    chosen: Mix,
    arrivals: Arrivals,
    sessions: Sessions,
    cost_s: Floats | None,
) -> list[Agreement]:
    """Compare mix, bytes, costs, burstiness, times between arrivals, re-use, sessions.

    `cost_s`: what a twin's answers cost, by number of what was asked; None without a twin. The load
    is taken as it will be asked for: independent draws from the mix, Poisson arrivals (so do many
    connections with pauses), at the log's speed; sessions as geometric with their mean.
    """
    shares = np.zeros(len(source.asked))
    shares[chosen.ids] = chosen.shares / chosen.shares.sum()
    return [
        _mix(source, shares),
        _bytes(source, shares),
        *_cost(source, shares, cost_s),
        *(
            Agreement(
                what=f"burstiness in windows of {name[:-1]} s (1: independent)",
                log=value,
                load=1.0,
                tolerance=BURSTS_DIFFER,
            )
            for name, value in arrivals.dispersion.items()
        ),
        *_between_arrivals(source.time_s, arrivals.rate_per_s),
        _reuse(source, chosen),
        _session_length(sessions),
    ]


def _mix(source: Log, shares: Floats) -> Agreement:
    """By the total variation distance: the share of requests that would have to be others."""
    counts = np.bincount(source.asked_id, minlength=len(shares))
    distance = float(np.abs(counts / counts.sum() - shares).sum() / 2)
    return Agreement(
        what="request mix, share alike", log=1.0, load=1.0 - distance, tolerance=SHARES_DIFFER
    )


def _bytes(source: Log, shares: Floats) -> Agreement:
    counts = np.bincount(source.asked_id, minlength=len(shares))
    totals = np.bincount(source.asked_id, source.body_bytes, minlength=len(shares))
    each = totals / np.maximum(counts, 1)
    return Agreement(
        what="bytes per answer, mean",
        log=float(source.body_bytes.mean()),
        load=float(each @ shares),
        tolerance=SIZES_DIFFER,
    )


def _cost(source: Log, shares: Floats, cost_s: Floats | None) -> list[Agreement]:
    """Hold the CPU time of a twin's pages against the time that answers took, files among them."""
    known = source.took_s[~np.isnan(source.took_s)]
    if not len(known):
        return []
    return [
        Agreement(
            what="ms to make an answer, mean",
            log=1e3 * float(known.mean()),
            load=None if cost_s is None else 1e3 * float(cost_s @ shares),
            tolerance=TIMES_DIFFER,
        )
    ]


def _between_arrivals(time_s: Floats, rate_per_s: float) -> list[Agreement]:
    whole = bool((time_s == np.floor(time_s)).all()) and rate_per_s > FEW_PER_S
    known = len(time_s) > 1 and rate_per_s > 0
    gaps = np.diff(time_s) if known else np.zeros(1)
    return [
        Agreement(
            what=f"s between arrivals, p{round(100 * share)}",
            log=None if whole or not known else float(np.quantile(gaps, share)),
            load=-log1p(-share) / rate_per_s if known else None,
            tolerance=TIMES_DIFFER,
        )
        for share in (0.5, NINE_IN_TEN)
    ]


def _reuse(source: Log, chosen: Mix) -> Agreement:
    looked_at = min(len(source), LOOKED_AT)
    drawn = np.random.default_rng(SEED).choice(
        len(chosen.ids), looked_at, p=chosen.shares / chosen.shares.sum()
    )
    of_log, of_load = (reuse_distances(ids[:looked_at]) for ids in (source.asked_id, drawn))
    return Agreement(
        what="other paths until one comes again, median",
        log=float(np.median(of_log)) if of_log else None,
        load=float(np.median(of_load)) if of_load else None,
        tolerance=TIMES_DIFFER,
    )


def reuse_distances(asked_id: Whole) -> list[int]:
    """Give how many other paths were asked for since the same one last was, where it was.

    The LRU stack distance of Mattson et al. 1970: a cache of more paths would still have had it.
    """
    last: dict[int, int] = {}
    latest: list[int] = []  # when each path was last asked for, in order
    distances = []
    for now, asked in enumerate(asked_id.tolist()):
        if asked in last:
            at = bisect_left(latest, last[asked])
            distances.append(len(latest) - at - 1)
            del latest[at]
        latest.append(now)
        last[asked] = now
    return distances


def _session_length(sessions: Sessions) -> Agreement:
    mean = sessions.requests.mean
    geometric = ceil(log(1 - NINE_IN_TEN) / log1p(-1 / mean)) if mean > 1 else 1
    return Agreement(
        what="requests in a session, p90 (geometric)",
        log=sessions.requests.p90,
        load=float(geometric),
        tolerance=TIMES_DIFFER,
    )
