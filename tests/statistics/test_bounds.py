"""Bounds: simulated servers with interference, whose truth without it has to lie inside."""

from bisect import bisect_right
from dataclasses import dataclass
from heapq import heappop, heappush
from math import exp, inf, log, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.histogram import Histogram
from webdyno.core.judgement import Verdict
from webdyno.statistics.bounds import (
    Bound,
    added_in_closed_loop_us,
    added_in_open_loop_us,
    cpu_when_shared,
    extra_share,
    lost_share,
    memory_under_pressure,
    of_ratio,
    quantile_when_delayed,
    quantile_when_sent_late,
    throughput_when_slowed,
    tipping,
    when_settling,
    with_bound,
)
from webdyno.statistics.interval import Estimate, Logs
from webdyno.statistics.verdict import by_interval

TOOK_S = 4.0
SERVICE_S = 0.002
NOISE = 0.015
"""ln: what the throughput of a simulated slot may be off by chance."""


@dataclass(frozen=True)
class Stalls:
    """When a worker stalls: each stall's beginning and length, in order, not overlapping."""

    at_s: list[float]
    length_s: list[float]

    @property
    def lost_s(self) -> float:
        """All of them together."""
        return sum(self.length_s)

    def end(self, start_s: float, work_s: float) -> float:
        """Give when work that begins at `start_s` is done."""
        i = max(bisect_right(self.at_s, start_s) - 1, 0)
        now_s = start_s
        for at_s, length_s in zip(self.at_s[i:], self.length_s[i:], strict=True):
            if at_s + length_s <= now_s:
                continue
            if now_s + work_s <= at_s:
                break
            work_s -= max(at_s - now_s, 0.0)
            now_s = at_s + length_s
        return now_s + work_s


NONE = Stalls([], [])


def stalls(rng: np.random.Generator, count: int, mean_s: float) -> Stalls:
    """Make stalls at random places of the slot."""
    at_s = np.sort(rng.uniform(0, TOOK_S, count))
    free_s = np.diff(np.append(at_s, TOOK_S))
    length_s = np.minimum(rng.exponential(mean_s, count), 0.9 * free_s)
    return Stalls(at_s.tolist(), length_s.tolist())


def serve(
    arrivals_s: list[float],
    of_worker: list[Stalls],
    think_s: float | None,
    of_client: Stalls = NONE,
) -> Logs:
    """Serve first come, first served; give the latency of what was answered in the slot.

    With `think_s` each response is followed, after that pause, by the next request.
    """
    rng = np.random.default_rng(0)
    queue, free = sorted(arrivals_s), [(0.0, worker) for worker in range(len(of_worker))]
    taken: list[float] = []
    while queue and queue[0] < TOOK_S:
        came_s = heappop(queue)
        free_s, worker = heappop(free)
        end_s = of_worker[worker].end(max(came_s, free_s), SERVICE_S * rng.uniform(0.2, 1.8))
        heappush(free, (end_s, worker))
        if end_s < TOOK_S:
            taken.append(end_s - came_s)
        if think_s is not None:
            heappush(queue, of_client.end(end_s, think_s))
    return np.array(taken)


def histogram(times_s: Logs) -> Histogram:
    low, counts = np.unique(np.floor(times_s * 1e6), return_counts=True)
    return Histogram(low=low, width=np.ones(len(low)), counts=counts)


WORLDS = [(0, 30, 0.002), (1, 30, 0.02), (2, 4, 0.2), (3, 200, 0.004)]
"""Seed, number of stalls and their mean length."""


@pytest.mark.parametrize(("seed", "count", "mean_s"), WORLDS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("think_s", [0.0, 0.01])
def test_the_rate_of_a_closed_loop(
    seed: int, count: int, mean_s: float, workers: int, think_s: float
) -> None:
    """Stolen time, other programs, a pause of all: however it is spread, and over which workers."""
    rng = np.random.default_rng(seed)
    lost = [stalls(rng, count, mean_s) for _ in range(workers)]
    quiet = serve([0.0] * 8, [NONE] * workers, think_s)
    interfered = serve([0.0] * 8, lost, think_s)
    used_s = len(interfered) * SERVICE_S
    bound = throughput_when_slowed(
        "steal", lost_share(sum(each.lost_s for each in lost), used_s, TOOK_S)
    )
    moved = log(len(interfered) / len(quiet))
    assert -bound.down - NOISE <= moved <= NOISE


@pytest.mark.parametrize(("seed", "count", "mean_s"), WORLDS)
@pytest.mark.parametrize("think_s", [0.0, 0.01])
def test_the_rate_when_the_client_is_cpu_starved(
    seed: int, count: int, mean_s: float, think_s: float
) -> None:
    held = stalls(np.random.default_rng(seed), count, mean_s)
    quiet = serve([0.0] * 8, [NONE], think_s)
    interfered = serve([0.0] * 8, [NONE], think_s, held)
    bound = throughput_when_slowed("client-cpu-starved", held.lost_s / TOOK_S)
    assert -bound.down - NOISE <= log(len(interfered) / len(quiet)) <= NOISE


@pytest.mark.parametrize(("seed", "count", "mean_s"), WORLDS)
@pytest.mark.parametrize("quantile", [0.5, 0.99])
def test_quantiles_of_a_closed_loop(seed: int, count: int, mean_s: float, quantile: float) -> None:
    lost = stalls(np.random.default_rng(seed), count, mean_s)
    quiet, interfered = (serve([0.0] * 8, [each], 0.0) for each in (NONE, lost))
    share = lost_share(lost.lost_s, len(interfered) * SERVICE_S, TOOK_S)
    added_us = added_in_closed_loop_us(share, float(interfered.mean()) * 1e6)
    bound = quantile_when_delayed("steal", histogram(interfered), quantile, added_us)
    moved = log(np.quantile(interfered, quantile) / np.quantile(quiet, quantile))
    assert moved <= bound.up + 5 * NOISE
    assert bound.up == pytest.approx(-log(1 - share), rel=0.5) or bound.up > share


@pytest.mark.parametrize(("seed", "count", "mean_s"), WORLDS)
@pytest.mark.parametrize("quantile", [0.5, 0.99])
def test_quantiles_of_an_open_loop(seed: int, count: int, mean_s: float, quantile: float) -> None:
    rng = np.random.default_rng(seed)
    arrivals_s = rng.uniform(0, TOOK_S, 600).tolist()
    lost = stalls(rng, count, mean_s)
    quiet, interfered = (serve(arrivals_s, [each], None) for each in (NONE, lost))
    busy = 600 * SERVICE_S / (TOOK_S - lost.lost_s)
    added_us = added_in_open_loop_us(lost.lost_s, max(lost.length_s), TOOK_S, busy)
    bound = quantile_when_delayed("steal", histogram(interfered), quantile, added_us)
    assert log(np.quantile(interfered, quantile) / np.quantile(quiet, quantile)) <= bound.up


@pytest.mark.parametrize("lag_s", [0.0002, 0.002, 0.01])
@pytest.mark.parametrize("quantile", [0.5, 0.99])
def test_requests_that_leave_late(lag_s: float, quantile: float) -> None:
    rng = np.random.default_rng(1)
    due_s = np.sort(rng.uniform(0, TOOK_S, 800))
    lag = np.minimum(rng.exponential(lag_s, 800), TOOK_S - due_s)
    quiet = serve(due_s.tolist(), [NONE], None)
    waited = serve((due_s + lag).tolist(), [NONE], None)
    order = np.argsort(due_s + lag, kind="stable")[: len(waited)]
    from_due = waited + lag[order]
    late_us = tuple(float(each) * 1e6 for each in np.quantile(lag, [0.5, 0.99, 1]))
    bound = quantile_when_sent_late(
        histogram(from_due), quantile, (late_us[0], late_us[1], late_us[2]), 0.4
    )
    moved = log(np.quantile(from_due, quantile) / np.quantile(quiet, quantile))
    assert moved <= bound.up + NOISE


def test_an_open_loop_can_not_exceed_what_is_offered() -> None:
    assert throughput_when_slowed("steal", 0.3, of_offered=0.99).down == pytest.approx(-log(0.99))
    assert throughput_when_slowed("steal", 0.3, of_offered=1.01).down == 0
    assert throughput_when_slowed("steal", 0.013).down == pytest.approx(log(1 + 0.013 / 0.987))
    assert throughput_when_slowed("steal", 1.0).down == inf


@given(
    true_us=st.floats(10, 1e4),
    requests=st.integers(100, 100_000),
    charged=st.floats(0, 1),
    steal_share=st.floats(0, 0.5),
)
def test_cpu_time_with_stolen_time_in_it(
    true_us: float, requests: int, charged: float, steal_share: float
) -> None:
    """A kernel that charges any part of the stolen time to the servers."""
    true_s = true_us * requests / 1e6
    steal_s = steal_share * true_s
    used_s = true_s + charged * steal_s
    assert log(used_s / true_s) <= cpu_when_shared("steal", extra_share(steal_s, used_s)).up + 1e-9


def test_memory_that_was_taken_away_can_not_be_bounded() -> None:
    assert memory_under_pressure(0.0) == Bound("memory-pressure")
    assert memory_under_pressure(0.01).down == inf


@pytest.mark.parametrize("time_constant", [0.1, 0.5, 1.0, 1.4])
@pytest.mark.parametrize("start", [-0.4, 0.2])
def test_a_server_that_still_settles(time_constant: float, start: float) -> None:
    """Four slots whose logs fade to 0, as long as 1.4 time constants last at most: the truth is 0.

    0.7 time constants are the least for which the bound is promised.
    """
    slots = start * np.exp(-np.linspace(0, 1, 4) / time_constant)
    change = float(slots[-1] - slots[0])
    bound = when_settling("trend", Estimate(change, change, change, "t"))
    mean = float(slots.mean())
    assert mean - bound.up - 1e-9 <= 0 <= mean + bound.down + 1e-9


def test_a_change_that_may_be_none_counts_both_ways() -> None:
    bound = when_settling("slot-trend", Estimate(-0.01, 0.01, 0.03, "t"))
    assert bound.down == pytest.approx(0.045)
    assert bound.up == pytest.approx(0.015)


def test_ratios_add_up_the_worst() -> None:
    variant = [Bound("steal", down=0.01), Bound("slot-trend", down=0.002, up=0.003)]
    baseline = [Bound("steal", down=0.02)]
    together = of_ratio(variant, baseline)
    assert (together.down, together.up) == pytest.approx((0.012, 0.023))
    wide = with_bound(Estimate(0.05, 0.06, 0.07, "t"), together)
    assert (wide.low, wide.high) == pytest.approx((0.027, 0.082))


@given(
    truth=st.floats(-1, 1),
    lowered=st.floats(0, 0.3),
    raised=st.floats(0, 0.3),
    half=st.floats(0.001, 0.1),
)
def test_what_survives_is_true(truth: float, lowered: float, raised: float, half: float) -> None:
    """However variants were moved within their bounds, no surviving verdict has the wrong sign."""
    variant, baseline = Bound("steal", down=lowered), Bound("other-work", down=raised)
    for moved in (-lowered, raised):
        at = truth + moved
        wide = with_bound(Estimate(at - half, at, at + half, "t"), of_ratio([variant], [baseline]))
        verdict = by_interval(wide, log1p(0.02), "higher")
        if verdict is Verdict.FASTER:
            assert truth > 0
        if verdict is Verdict.SLOWER:
            assert truth < 0
        if verdict is Verdict.EQUIVALENT:
            assert abs(exp(truth) - 1) < 0.021


@pytest.mark.parametrize(
    ("ends", "bound", "said"),
    [
        ((0.0862, 0.1, 0.11), Bound("all", 0.5, 0.0129), "1.3%; it would take 9%"),
        ((-0.1, -0.05, -0.04), Bound("all", 0.06, 0), "6.2%; it would take 4.1%"),
        ((-0.01, 0.0, 0.012), Bound("all", 0.001, 0.001), "0.1%; it would take 0.78%"),
    ],
)
def test_the_tipping_point(ends: tuple[float, float, float], bound: Bound, said: str) -> None:
    assert tipping(Estimate(*ends, "t"), bound, log1p(0.02)) == (
        "interference shifted the ratio toward this verdict by at most "
        f"{said} to change the verdict"
    )


def test_what_has_no_verdict_can_not_be_turned() -> None:
    assert tipping(Estimate(-0.05, 0.0, 0.05, "t"), Bound("all", inf, 0), 0.02) is None
    unknown = tipping(Estimate(-0.3, -0.2, -0.1, "t"), Bound("all", inf, 0), 0.02)
    assert unknown is not None
    assert unknown.startswith("how far interference shifted the ratio can't be bounded")
