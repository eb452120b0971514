"""What a log was made with comes back: popularity, sessions, bursts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traffic.made import zipf_draws
from webdyno.traffic.fits import (
    SESSION_ENDS_S,
    arrivals,
    dispersion,
    popularity,
    reuse_distances,
    sessions,
    zipf_exponent,
)

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=20)
@given(SEEDS, st.floats(0.3, 1.5), st.integers(20, 400))
def test_zipfs_exponent_comes_back_within_3_percent(seed: int, exponent: float, paths: int) -> None:
    drawn = zipf_draws(seed, 400 * paths, paths, exponent)
    found = zipf_exponent(np.bincount(drawn, minlength=paths))
    assert abs(found.value - exponent) < 0.03 * exponent + 5 * found.error


def test_the_exponent_s_standard_error_is_its_spread() -> None:
    found = [zipf_exponent(np.bincount(zipf_draws(it, 20_000, 30, 1.0))) for it in range(200)]
    spread = float(np.std([each.value for each in found], ddof=1))
    assert spread == pytest.approx(found[0].error, rel=0.2)


@settings(max_examples=10)
@given(SEEDS)
def test_zipfs_law_is_taken_where_it_holds(seed: int) -> None:
    assert popularity(zipf_draws(seed, 40_000, 200, 0.9), 200).kind == "zipf"


@settings(max_examples=10)
@given(SEEDS)
def test_own_shares_are_taken_where_it_doesnt_hold(seed: int) -> None:
    shares = np.array([0.3] * 3 + [0.1 / 97] * 97)
    drawn = np.random.default_rng(seed).choice(100, 20_000, p=shares)
    found = popularity(drawn, 100)
    assert found.kind == "top"
    assert found.zipf_loss_nats > 0.01


@settings(max_examples=10)
@given(SEEDS, st.floats(1.5, 20.0), st.floats(0.5, 60.0))
def test_sessions_come_back_within_10_percent(seed: int, length: float, pause_s: float) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(1 / length, 3_000)
    clients = np.repeat(np.arange(3_000) % 1_000, lengths)  # three sessions each
    starts = np.repeat(np.arange(3_000) // 1_000 * 100_000.0, lengths)
    pauses = np.minimum(rng.exponential(pause_s, len(clients)), SESSION_ENDS_S)
    begins = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    total = np.cumsum(pauses)
    times = starts + total - np.repeat(total[begins], lengths)
    order = np.argsort(times, kind="stable")
    found, each = sessions(times[order], clients[order])
    assert found.clients == 1_000
    assert found.sessions == 3_000
    assert sorted(each.tolist()) == sorted(lengths.tolist())
    assert found.requests.mean == pytest.approx(lengths.mean())
    assert found.pause_s is not None
    assert found.pause_s.mean == pytest.approx(pause_s, rel=0.1)


@settings(max_examples=10)
@given(SEEDS, st.floats(1.0, 50.0))
def test_bursts_come_back(seed: int, burst: float) -> None:
    """Batches of geometric size, arriving as Poisson: the index is E[size²] / E[size]."""
    rng = np.random.default_rng(seed)
    sizes = rng.geometric(1 / burst, 30_000)
    times = np.repeat(np.cumsum(rng.exponential(0.5, 30_000)), sizes)
    truth = 2 * burst - 1
    assert dispersion(times, 10.0) == pytest.approx(truth, rel=0.25)


def test_a_steady_beat_has_no_dispersion_and_short_logs_report_none() -> None:
    beat = np.arange(0, 1000, 0.1)
    assert dispersion(beat, 10.0) == pytest.approx(0.0, abs=0.01)
    assert dispersion(beat, 60.0) is None
    assert arrivals(beat).rate_per_s == pytest.approx(10.0)
    assert arrivals(np.zeros(5)).rate_per_s == 0.0


def test_hours_are_those_of_the_day() -> None:
    found = arrivals(np.array([0.0, 3600.0, 3601.0, 90_000.0]))
    assert found.hours[:3] == [0.25, 0.75, 0.0]


@given(st.lists(st.integers(0, 6), max_size=40))
def test_distances_of_reuse_are_what_a_slow_count_gives(asked: list[int]) -> None:
    slow = []
    for now, each in enumerate(asked):
        before = [at for at in range(now) if asked[at] == each]
        if before:
            slow.append(len(set(asked[before[-1] + 1 : now])))
    assert reuse_distances(np.array(asked, dtype=np.int64)) == slow
