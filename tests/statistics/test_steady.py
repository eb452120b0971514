"""Steady state, memory and cycles of simulated throughputs whose truth is known.

Shares of wrong responses: docs/validation/coverage.md, from more pilots than these, with bounds
that chance doesn't reach.
"""

import numpy as np
import pytest

from simulations.steady import (
    NOT_STEADY,
    STEADY,
    TIME_S,
    WINDOW_S,
    WINDOWS,
    in_bursts,
    remembering,
    right,
    swing,
)
from webdyno.statistics.steady import Series, autocorrelation_time, cycle, onset, windows_to_join
from webdyno.statistics.steady_starts import next_step

PILOTS = 40


@pytest.mark.parametrize("name", STEADY)
def test_the_beginning_of_steady_state_is_found(name: str) -> None:
    """Right in 92% or more of 200 pilots each, with a memory in 85%; else mostly too late."""
    rng = np.random.default_rng(1)
    found = [onset(Series(WINDOW_S, STEADY[name][0](rng))) for _ in range(PILOTS)]
    assert sum(right(name, it) for it in found) >= 0.8 * PILOTS, found


@pytest.mark.parametrize("name", NOT_STEADY)
def test_what_is_not_steady_yet_is_reported(name: str) -> None:
    """Called steady in 8% of 200 drifts of a tenth, in none of the others."""
    rng = np.random.default_rng(2)
    found = [onset(Series(WINDOW_S, NOT_STEADY[name](rng))) for _ in range(PILOTS)]
    assert sum(it.steady for it in found) <= 0.2 * PILOTS
    assert all(it.why for it in found)


def test_a_second_next_to_bursts_is_enough() -> None:
    """In 82 of these; in 32 while noise was known from the median difference alone."""
    rng = np.random.default_rng(4)
    looks = [Series(0.025, in_bursts(rng, 40, 0.025)) for _ in range(100)]
    steps = [next_step([[look]], is_last_start=True) for look in looks]
    assert steps.count("enough") >= 70


def test_pilots_that_are_too_short_say_so() -> None:
    rng = np.random.default_rng(3)
    for windows in range(40):
        found = onset(Series(WINDOW_S, remembering(rng, 0.95, windows + 1)))
        assert not found.steady or windows > 8
    assert onset(Series(WINDOW_S, np.zeros(1))).why.startswith("too short to decide")


def test_a_rate_without_any_noise_is_steady() -> None:
    found = onset(Series(WINDOW_S, np.full(WINDOWS, np.log(1000.0))))
    assert (found.steady, found.at_s) == (True, 0)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8, 0.9])
def test_autocorrelation_time_of_a_known_memory(memory: float) -> None:
    """(1 + φ) / (1 - φ) windows for an AR(1)."""
    rng = np.random.default_rng(4)
    times = [autocorrelation_time(remembering(rng, memory, 2_000)) for _ in range(20)]
    assert np.median(times) == pytest.approx((1 + memory) / (1 - memory), rel=0.2)


@pytest.mark.parametrize("period_s", [0.3, 0.6, 1.3, 2.0])
def test_a_cycle_is_found_with_its_period(period_s: float) -> None:
    rng = np.random.default_rng(5)
    logs = 0.05 * np.sin(2 * np.pi * TIME_S / period_s + 1) + remembering(rng, 0.5)
    found = cycle(Series(WINDOW_S, logs))
    assert found == pytest.approx(period_s, rel=0.05)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_no_cycle_is_found_in_noise(memory: float) -> None:
    """In at most 2 of 100, counting noise on top or not."""
    rng = np.random.default_rng(6)
    made = [remembering(rng, memory) + rng.normal(0, 0.02 * (i % 2), WINDOWS) for i in range(150)]
    assert sum(cycle(Series(WINDOW_S, logs)) is not None for logs in made) <= 7


def test_a_swing_like_apaches_is_a_cycle() -> None:
    rng = np.random.default_rng(7)
    found = [cycle(Series(WINDOW_S, swing(rng))) for _ in range(20)]
    assert all(period_s is not None and 0.6 < period_s < 2 for period_s in found)


def test_windows_with_few_answers_are_joined() -> None:
    counts = [0, 5, 5, 0, 5, 5, 5, 5, 5, 5]
    assert windows_to_join(counts) == 7
    joined = Series.of_counts(counts, 0.1, joined=7)
    assert joined.window_s == pytest.approx(0.7)
    assert np.exp(joined.logs) == pytest.approx([25.5 / 0.7])
    assert windows_to_join([30] * 10) == 1
    assert windows_to_join([0] * 10) == 10
    assert windows_to_join([]) == 1


def test_too_few_answers_to_report_a_rate_are_one_window() -> None:
    counts = [0] * 39 + [16]
    assert len(Series.of_counts(counts, 0.025, windows_to_join(counts)).logs) == 1


def test_a_beginning_as_short_as_a_stall_is_no_outlier() -> None:
    rng = np.random.default_rng(9)
    logs = np.where(np.arange(WINDOWS) < 3, -0.5, 0) + rng.normal(0, 0.01, WINDOWS)
    assert 2 * WINDOW_S < onset(Series(WINDOW_S, logs)).at_s < 5 * WINDOW_S
