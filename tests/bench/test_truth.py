"""The computed truth, against a slow simulation and against its own definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.truth import (
    PERCENTILES,
    TOO_LATE_LIMIT,
    Bimodal,
    Constant,
    Frozen,
    all_within,
    due_times_ms,
    percentile,
    sound,
    true_percentiles,
    within,
)

FROZEN = Frozen(base_ms=1, freeze_at_ms=500, freeze_ms=200, period_ms=1000)
milliseconds = st.floats(min_value=0, max_value=1e5)


@st.composite
def freezes(draw: st.DrawFn) -> Frozen:
    """Any freezes that end before their period does."""
    period_ms = draw(st.integers(min_value=10, max_value=5000))
    freeze_ms = draw(st.integers(min_value=0, max_value=period_ms - 1))
    at_ms = draw(st.integers(min_value=0, max_value=period_ms - freeze_ms - 1))
    return Frozen(draw(st.integers(min_value=0, max_value=50)), at_ms, freeze_ms, period_ms)


@given(freezes(), st.integers(min_value=0, max_value=20_000))
def test_frozen_server_millisecond_by_millisecond(delays: Frozen, due_ms: int) -> None:
    answered_ms = due_ms + int(delays.base_ms)
    end_ms = delays.freeze_at_ms + delays.freeze_ms
    while delays.freeze_at_ms <= answered_ms % delays.period_ms < end_ms:
        answered_ms += 1
    found = delays.latency_ms(np.array([float(due_ms)]))
    assert found[0] == pytest.approx(answered_ms - due_ms)


@given(st.floats(min_value=0, max_value=1000))
def test_whole_periods_look_alike_from_any_phase(phase_ms: float) -> None:
    due_ms = due_times_ms(1000, 10)
    here = FROZEN.latency_ms(due_ms)
    there = FROZEN.latency_ms(due_ms + phase_ms)
    for percent in PERCENTILES:
        assert percentile(there, percent) == pytest.approx(percentile(here, percent), abs=1)


def test_freeze_of_a_fifth_of_the_time() -> None:
    truth = true_percentiles(FROZEN, rate_rps=1000, duration_s=10)
    assert truth == {50: 1, 75: 1, 90: 100.5, 95: 150.5, 99: 190.5, 99.9: 199.5}


@given(milliseconds)
def test_constant(delay_ms: float) -> None:
    truth = true_percentiles(Constant(delay_ms), rate_rps=100, duration_s=3)
    assert set(truth.values()) == {delay_ms}


@given(st.integers(min_value=1, max_value=300), st.integers(min_value=1, max_value=2000))
def test_bimodal_counts_its_slow_ones(slow_every: int, requests: int) -> None:
    delays = Bimodal(fast_ms=1, slow_ms=9, slow_every=slow_every)
    slow = np.count_nonzero(delays.latency_ms(due_times_ms(requests, 1)) == delays.slow_ms)
    assert slow == requests // slow_every


@given(
    st.lists(milliseconds, min_size=1, max_size=200),
    st.sampled_from(PERCENTILES) | st.floats(min_value=0.1, max_value=100),
)
def test_percentile_is_the_smallest_that_suffices(values: list[float], percent: float) -> None:
    found = percentile(np.array(values), percent)
    share = sum(value <= found for value in values) / len(values) * 100
    smaller = sum(value < found for value in values) / len(values) * 100
    assert found in values
    assert smaller - 1e-6 < percent <= share + 1e-6


def test_percentile_of_ten_thousand_is_not_one_too_far() -> None:
    assert percentile(np.arange(1.0, 10_001.0), 99.9) == 9990


def test_bounds_are_two_percent_and_a_millisecond() -> None:
    assert within(104, 101)
    assert within(98, 101)
    assert not within(104.1, 101)
    assert not all_within({50: 1.0, 99: 160.0}, {50: 1.0, 99: 190.0})


@given(st.integers(min_value=1, max_value=10**6), st.data())
def test_a_sound_server_leaves_every_percentile_to_be_judged(
    requests: int, data: st.DataObject
) -> None:
    too_late = data.draw(st.integers(min_value=0, max_value=requests))
    beyond = (1 - max(PERCENTILES) / 100) * requests
    assert not sound(requests, too_late) or too_late < beyond / 2
    assert sound(requests, too_late) == (too_late / requests <= TOO_LATE_LIMIT)


def test_a_stall_of_the_whole_machine_is_unsound() -> None:
    assert sound(requests=10_000, too_late=4)
    assert not sound(requests=10_000, too_late=5)
