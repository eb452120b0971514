"""How far interference can have moved a metric at most, from the run's own evidence.

All bounds are in ln of the metric: what was measured lies between the value without interference
times exp(-down) and that times exp(up). Derivations: docs/validation/method.md. They hold for
servers that do the same work, in the same order, when they are slower; what they omit is said
there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import expm1, inf, log, log1p

import numpy as np

from webdyno.core.format import percent
from webdyno.core.histogram import Histogram
from webdyno.statistics.interval import LARGEST_LOG, Estimate

STILL_TO_COME = 1.0
"""Of a change seen from first to last: how much more of it may come once the server has settled."""
SEND_DELAY_WEIGHTS = ((0.5, "p50"), (0.49, "p99"), (0.01, "max"))


@dataclass(frozen=True)
class Bound:
    """How far a metric can have been moved, in ln: too low by `down`, too high by `up` at most."""

    cause: str
    down: float = 0.0
    up: float = 0.0


UNBIASED = Bound("nothing")


def lost_share(lost_cpu_s: float, used_cpu_s: float, took_s: float) -> float:
    """Return the share of a slot's time by which lost CPU time can have delayed the servers.

    `lost_cpu_s` went to the hypervisor, to other programs or to work left over. It delays each of
    the CPUs that the servers kept busy, or, where that is less than one, the one that mattered.
    """
    return min(max(lost_cpu_s, 0.0) / max(took_s, used_cpu_s), 1.0)


def throughput_when_slowed(cause: str, share: float, of_offered: float | None = None) -> Bound:
    """Bound the throughput when servers, client or link stalled for a share of the time.

    Slowing *all* parts of a closed loop by the same factor slows the throughput by that factor;
    slowing some does less. So the throughput fell at most to 1 - share of what it was: by
    share / (1 - share) seen from the measured.
    `of_offered`: an open loop's throughput as a share of the offered one, which it can't exceed.
    """
    down = -log1p(-share) if share < 1 else inf
    if of_offered is not None:
        down = min(down, max(0.0, -log(of_offered))) if of_offered > 0 else down
    return Bound(cause, down=down)


def rate_when_client_limited(busy_share: float | None) -> Bound:
    """Bound throughput that the client kept low: by what CPU time the servers had left.

    `busy_share`: of the servers' CPUs, if known. Were they busy all the time, a request would cost
    less CPU time, as more is done at once, but no less than `busy_share` of it:
    docs/validation/method.md has what was measured.
    """
    down = -2 * log(min(busy_share, 1.0)) if busy_share else inf
    return Bound("client-limited", down=down)


def extra_share(extra_cpu_s: float, used_cpu_s: float) -> float:
    """Return the share of the counted CPU time that may not be the servers' own work."""
    return min(max(extra_cpu_s, 0.0) / used_cpu_s, 1.0) if used_cpu_s > 0 else 0.0


def cpu_when_shared(cause: str, share: float) -> Bound:
    """Bound CPU per request of which a share may not be the servers' own work.

    `steal`: kernels that can't separate stolen time charge it to whatever ran, at most all of it.
    """
    return Bound(cause, up=-log1p(-share) if share < 1 else inf)


def memory_under_pressure(share: float) -> Bound:
    """Bound memory: pages are taken away under pressure, nobody knows how many."""
    return Bound("memory-pressure", down=inf if share > 0 else 0.0)


def quantile_when_delayed(
    cause: str,
    times_us: Histogram,
    quantile: float,
    mean_added_us: float,
    most_added_us: float = inf,
) -> Bound:
    """Bound a quantile of latency to which interference has added something.

    R' = R + A with A ≥ 0 has F(x) ≤ F'(x + a) + P(A > a) for every a, and P(A > a) ≤ mean(A) / a
    (Markov), 0 from `most_added_us` on. So Q(q) ≥ Q'(q - P(A > a)) - a; the best a counts.
    """
    measured = times_us.quantile(quantile)
    if measured is None or mean_added_us <= 0 or most_added_us <= 0:
        return Bound(cause)
    # Any a gives a bound, so a grid is enough.
    tried_us = mean_added_us / np.geomspace(1e-4, quantile, 200) if mean_added_us < inf else ()
    candidates = [
        (times_us.quantile(quantile - mean_added_us / a_us) or 0.0) - a_us for a_us in tried_us
    ]
    least = max([*candidates, measured - most_added_us])
    return Bound(cause, up=log(measured / least) if least > 0 else inf)


def added_in_closed_loop_us(share: float, mean_latency_us: float) -> float:
    """Return the mean time that stalling for a share of the time has added to a request.

    Little's law: connections = throughput · (response + pause), and the throughput would have been
    higher by 1 / (1 - share) at most, so the mean latency was at least 1 - share of it.
    """
    return share * mean_latency_us


def added_in_open_loop_us(
    lost_s: float, longest_s: float, took_s: float, utilisation: float
) -> float:
    """Return the mean time that stalls, `lost_s` in all, have added to a request of an open loop.

    What comes in a stall of length L waits L/2 on average, and its queue takes L·u/(1 - u) to be
    worked off at utilisation u, in which others wait: L²/2 · 1/(1 - u) of waiting per arrival and
    second, and the sum of L² is at most lost_s · longest_s.
    """
    if utilisation >= 1:
        return inf
    return lost_s * min(longest_s, lost_s) / (2 * took_s * (1 - utilisation)) * 1e6


def quantile_when_sent_late(
    times_us: Histogram, quantile: float, late_us: tuple[float, float, float], utilisation: float
) -> Bound:
    """Bound a quantile in an open loop whose requests left late: `late_us` is p50, p99 and max.

    Delayed arrivals leave a queue no later than if all were delayed by the longest delay, so that
    is the most. The mean delay is at most 50% · p50 + 49% · p99 + 1% · max; bunching makes others
    wait, 1/(1 - u) in all. CPU per request and the throughput stay as they are.
    """
    mean = sum(share * late for (share, _), late in zip(SEND_DELAY_WEIGHTS, late_us, strict=True))
    added = mean / (1 - utilisation) if utilisation < 1 else inf
    return quantile_when_delayed("send-delay", times_us, quantile, added, late_us[-1])


def when_settling(cause: str, change: Estimate, seen: float = 1.0) -> Bound:
    """Bound a metric that still changed: `change` is that of its ln from first to last.

    For `trend` (slots of a round) and `slot-trend` (thirds of a window). `seen`: share of the time
    over which the change was seen; over all of it there was as much more. The mean lies half of
    that before the last value, and no more is to come than has come (`STILL_TO_COME`), which is
    so of a change that fades exponentially, when it lasted 0.7 of its time constant. Both ends of
    the change's interval count.
    """
    reach = (0.5 + STILL_TO_COME) / seen
    return Bound(cause, down=reach * max(change.high, 0.0), up=reach * max(-change.low, 0.0))


def when_state_grows(apart: float) -> Bound:
    """Bound a metric whose cost rises more over a round than the other variant's, by `apart` (ln).

    What was measured is that of the middle of a round: the first slot, which found least, and the
    last lie half of that from it.
    """
    return Bound("state-grows", down=apart / 2, up=apart / 2)


def of_ratio(variant: Iterable[Bound], baseline: Iterable[Bound]) -> Bound:
    """Bound the log ratio of a variant and the baseline: all causes at once, in the worst way."""
    mine, theirs = list(variant), list(baseline)
    return Bound(
        "all",
        down=sum(b.down for b in mine) + sum(b.up for b in theirs),
        up=sum(b.up for b in mine) + sum(b.down for b in theirs),
    )


def with_bound(measured: Estimate, bound: Bound) -> Estimate:
    """Move the interval's ends outwards to where the truth can lie."""
    low, high = measured.low - bound.up, measured.high + bound.down
    return Estimate(low, measured.centre, high, measured.method)


def tipping(measured: Estimate, bound: Bound, limit: float) -> str | None:
    """Describe what would turn the verdict most easily; None where the interval allows none."""
    if measured.excludes_zero() and abs(measured.centre) > limit:
        rises = measured.low > 0
        needed, allowed = (measured.low, bound.up) if rises else (-measured.high, bound.down)
    else:
        sides = [(limit - measured.high, bound.down), (limit + measured.low, bound.up)]
        needed, allowed = min(sides, key=lambda side: side[0] - side[1])
    if needed < 0:
        return None
    change = f"it would take {percent(expm1(needed))} to change the verdict"
    if allowed > LARGEST_LOG:
        return f"how far interference shifted the ratio can't be bounded; {change}"
    shifted = f"by at most {percent(expm1(allowed))}"
    return f"interference shifted the ratio toward this verdict {shifted}; {change}"
