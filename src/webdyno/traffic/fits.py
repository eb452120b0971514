"""What is fitted to a log: shares of requests, arrivals and sessions; and how well that agrees."""

from bisect import bisect_left
from math import ceil, log, log1p
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from webdyno.core.request import MOST_REQUESTS
from webdyno.traffic.log import Floats, Log, Whole
from webdyno.traffic.workload import Agreement, Arrivals, Popularity, Sessions, Spread

MOST_EXPONENT = 10.0
GOOD_ENOUGH_NATS = 0.01
"""Zipf's law is taken where it reports the other half of the log at most this much worse per
request than the paths' own shares: by Pinsker's inequality their shares then differ by 7% in
all."""
SMOOTHING = 0.5
"""Added to each path's count, after Jeffreys: what wasn't seen in one half isn't impossible."""
THINNED = MOST_REQUESTS // 5
"""Requests that stand for the tail, where a log has more paths than an experiment."""
SESSION_ENDS_S = 1_800.0
"""A client that says nothing for half an hour has gone: the web's convention (Catledge and Pitkow
1995 found 25.5 minutes)."""
WINDOWS_S: dict[Literal["1s", "10s", "60s"], int] = {"1s": 1, "10s": 10, "60s": 60}
FEWEST_WINDOWS = 20
MOST_WINDOWS = 20_000_000
HOUR_S = 3600
LOOKED_AT = 50_000
"""Requests of which distances of re-use are taken."""
SHARES_DIFFER, SIZES_DIFFER, BURSTS_DIFFER, TIMES_DIFFER = 0.1, 0.1, 0.5, 0.25
SEED = 1
FEW_PER_S = 0.2
"""Arrivals this rare can be separated by a log that knows whole seconds."""
NINE_IN_TEN = 0.9


class Exponent(NamedTuple):
    """Zipf's exponent and its standard error."""

    value: float
    error: float


def zipf_exponent(counts: Whole) -> Exponent:
    """Estimate Zipf's exponent from how often each path was requested.

    Maximum likelihood over the ranks 1 to N with probability k^-s / H(N, s); the standard error
    comes from the Fisher information n Var(ln K) (Clauset, Shalizi and Newman 2009, appendix B, for
    a bounded range). With few requests per path the ranks themselves are uncertain, which the
    error doesn't say: it is meant for 20 requests a path and more.
    """
    ranked = np.sort(counts)[::-1].astype(np.float64)
    logs = np.log(np.arange(1, len(ranked) + 1, dtype=np.float64))
    total, weighted = ranked.sum(), float(ranked @ logs)

    def loss(exponent: float) -> float:
        return float(exponent * weighted + total * np.log(np.exp(-exponent * logs).sum()))

    if len(ranked) < 2:
        return Exponent(0.0, 0.0)
    best = float(minimize_scalar(loss, bounds=(0.0, MOST_EXPONENT), method="bounded").x)
    shares = zipf_shares(len(ranked), best)
    mean = float(shares @ logs)
    variance = float(shares @ (logs - mean) ** 2)
    return Exponent(best, (total * variance) ** -0.5 if variance > 0 else 0.0)


def zipf_shares(paths: int, exponent: float) -> Floats:
    """Return the shares of the ranks 1 to `paths`."""
    weights = np.arange(1, paths + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def popularity(asked_id: Whole, paths: int) -> Popularity:
    """Describe how requests, in order of time, are spread over paths; choose the law that fits."""
    counts = np.bincount(asked_id, minlength=paths)
    exponent = zipf_exponent(counts)
    loss = zipf_loss(asked_id, paths)
    kind: Literal["zipf", "top"] = "zipf" if loss <= GOOD_ENOUGH_NATS else "top"
    return Popularity(
        paths=paths, kind=kind, zipf=exponent.value, zipf_error=exponent.error, zipf_loss_nats=loss
    )


def zipf_loss(asked_id: Whole, paths: int) -> float:
    """Fit both laws to every other request; return Zipf's loss for the rest, in nats."""
    fitted = np.bincount(asked_id[::2], minlength=paths)
    others = np.bincount(asked_id[1::2], minlength=paths)
    if not others.sum():
        return 0.0
    own = (fitted + SMOOTHING) / (fitted.sum() + SMOOTHING * paths)
    by_law = _zipf_by_path(fitted, zipf_exponent(fitted[fitted > 0]).value)
    return float(others @ (np.log(own) - np.log(by_law)) / others.sum())


def _zipf_by_path(counts: Whole, exponent: float) -> Floats:
    """Return each path's share by its rank; paths of one count share those of their ranks."""
    _, group, sizes = np.unique(-counts, return_inverse=True, return_counts=True)
    begins = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    together = np.add.reduceat(zipf_shares(len(counts), exponent), begins)
    return np.asarray((together / sizes)[group], dtype=np.float64)


class Mix(NamedTuple):
    """What a load asks for: numbers of `Log.asked` in the order of their ranks, and shares."""

    ids: list[int]
    shares: Floats
    zipf: float | None
    """The exponent, where the shares are those of Zipf's law."""


def mix(log: Log, spread: Popularity) -> Mix:
    """Choose what is requested and how often.

    Of more paths than an experiment takes, the first ones keep their shares; evenly spaced ones
    of the others stand for these.
    """
    counts = np.bincount(log.asked_id, minlength=len(log.asked))
    ranked = np.argsort(-counts, kind="stable")
    one_method = spread.paths == len(log.asked)  # an experiment's Zipf's law knows no methods
    by_law = spread.kind == "zipf" and one_method
    shares = zipf_shares(len(ranked), spread.zipf) if by_law else counts[ranked] / counts.sum()
    if len(ranked) <= MOST_REQUESTS:
        return Mix(ranked.tolist(), shares, spread.zipf if by_law else None)
    first = MOST_REQUESTS - THINNED
    tail = np.linspace(first, len(ranked) - 1, THINNED).astype(int)
    of_tail = np.full(THINNED, shares[first:].sum() / THINNED)
    kept = np.concatenate((ranked[:first], ranked[tail]))
    return Mix(kept.tolist(), np.concatenate((shares[:first], of_tail)), None)


def spread_of_known(values: Floats) -> Spread | None:
    """Return the spread of those that are no NaN; None where there are none."""
    known = values[~np.isnan(values)]
    return spread_of(known) if len(known) else None


def spread_of(values: Floats | Whole) -> Spread:
    """Return mean and percentiles."""
    p50, p90, p99 = (float(value) for value in np.percentile(values, [50, 90, 99]))
    return Spread(mean=float(values.mean()), p50=p50, p90=p90, p99=p99)


def arrivals(time_s: Floats) -> Arrivals:
    """Describe when requests came; times are in order."""
    span_s = float(time_s[-1] - time_s[0])
    hours = np.bincount((time_s // HOUR_S).astype(np.int64) % 24, minlength=24) / len(time_s)
    windows = {name: dispersion(time_s, length_s) for name, length_s in WINDOWS_S.items()}
    return Arrivals(
        span_s=span_s,
        rate_per_s=(len(time_s) - 1) / span_s if span_s > 0 else 0.0,
        hours=[min(float(hour), 1.0) for hour in hours],
        dispersion={name: value for name, value in windows.items() if value is not None},
    )


def dispersion(time_s: Floats, window_s: float) -> float | None:
    """Return the index of dispersion for counts (Cox and Lewis 1966): variance over mean.

    None for fewer than 20 full windows.
    """
    windows = int((time_s[-1] - time_s[0]) // window_s)
    if not FEWEST_WINDOWS <= windows <= MOST_WINDOWS:
        return None
    which = ((time_s - time_s[0]) // window_s).astype(np.int64)
    counts = np.bincount(which[which < windows], minlength=windows)
    return float(counts.var(ddof=1) / counts.mean())


def sessions(time_s: Floats, client_id: Whole) -> tuple[Sessions, Whole]:
    """Describe what clients do in one go, and return the requests of each session."""
    order = np.lexsort((time_s, client_id))
    clients, times = client_id[order], time_s[order]
    pauses = np.diff(times)
    within = (clients[1:] == clients[:-1]) & (pauses <= SESSION_ENDS_S)
    begins = np.flatnonzero(np.concatenate(([True], ~within)))
    lengths = np.diff(np.concatenate((begins, [len(times)])))
    facts = Sessions(
        clients=len(np.unique(clients)),
        sessions=len(lengths),
        requests=spread_of(lengths),
        pause_s=spread_of(pauses[within]) if within.any() else None,
    )
    return facts, lengths


def fidelity(
    source: Log, chosen: Mix, arrivals: Arrivals, sessions: Sessions, cost_s: Floats | None
) -> list[Agreement]:
    """Compare mix, bytes, costs, burstiness, times between arrivals, re-use, sessions.

    `cost_s`: what a twin's responses cost, by number of what was asked; None without a twin. The
    load is taken as it will be requested: independent draws from the mix, Poisson arrivals (so do
    many connections with pauses), at the log's speed; sessions as geometric with their mean.
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
    """Of responses whose size is known, and of what is asked for that has such."""
    known = ~np.isnan(source.body_bytes)
    asked, sizes = source.asked_id[known], source.body_bytes[known]
    counts = np.bincount(asked, minlength=len(shares))
    each = np.bincount(asked, sizes, minlength=len(shares)) / np.maximum(counts, 1)
    share = float(shares[counts > 0].sum())
    return Agreement(
        what="bytes per response, mean",
        log=float(sizes.mean()) if len(sizes) else None,
        load=float(each @ shares) / share if share else None,
        tolerance=SIZES_DIFFER,
    )


def _cost(source: Log, shares: Floats, cost_s: Floats | None) -> list[Agreement]:
    """Hold the CPU time of a twin's pages against the time of responses, files among them."""
    known = source.took_s[~np.isnan(source.took_s)]
    if not len(known):
        return []
    return [
        Agreement(
            what="ms to make a response, mean",
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
    """Return how many other paths were requested since the same one last was, where it was.

    The LRU stack distance of Mattson et al. 1970: a cache of more paths would still have had it.
    """
    last: dict[int, int] = {}
    latest: list[int] = []  # when each path was last requested, in order
    distances = []
    for now, asked in enumerate(asked_id.tolist()):
        if asked in last:
            place = bisect_left(latest, last[asked])
            distances.append(len(latest) - place - 1)
            del latest[place]
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
