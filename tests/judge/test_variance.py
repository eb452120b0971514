"""Noise split into restarts and slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedArm, simulated_run
from webdyno.judge import judge
from webdyno.judge.variance import best_slots, random_effects


def test_the_textbook_example() -> None:
    """Three groups of three with means 2, 5, 8: mean squares 27 between and 1 within."""
    groups = [np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.array([7.0, 8.0, 9.0])]
    between, within = random_effects(groups)
    assert within == pytest.approx(1.0)
    assert between == pytest.approx((27.0 - 1.0) / 3)


def test_known_variances_are_found_again() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.normal(rng.normal(0, 0.05), 0.02, rng.integers(3, 6)) for _ in range(2_000)]
    between, within = random_effects(groups)
    assert between**0.5 == pytest.approx(0.05, rel=0.05)
    assert within**0.5 == pytest.approx(0.02, rel=0.05)


def test_less_variance_between_than_chance_is_none() -> None:
    groups = [np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.array([1.0, -1.0])]
    assert random_effects(groups)[0] == 0.0


@given(
    restart=st.floats(0, 1), slot=st.floats(0, 1), start_s=st.floats(0, 60), slot_s=st.floats(0, 9)
)
def test_the_number_of_slots_is_even_and_bounded(
    restart: float, slot: float, start_s: float, slot_s: float
) -> None:
    best = best_slots(restart, slot, start_s, slot_s)
    assert 2 <= best <= 32
    assert best % 2 == 0


def test_noisy_slots_and_dear_starts_ask_for_more_slots() -> None:
    assert best_slots(restart=0.04, slot=0.01, start_s=1, slot_s=1) == 2
    assert best_slots(restart=0.01, slot=0.04, start_s=4, slot_s=1) == 4
    assert best_slots(restart=0.01, slot=0.16, start_s=4, slot_s=1) == 8
    assert best_slots(restart=0.0, slot=0.16, start_s=4, slot_s=1) == 32


def test_a_judgement_tells_where_the_noise_is() -> None:
    run = simulated_run(
        {"a": SimulatedArm(), "b": SimulatedArm()}, blocks=30, restart_sd=0.05, slot_sd=0.01
    )
    for split in judge(run.head, run.records).variance:
        assert split.metric == "rate_rps"
        assert split.restart_sd == pytest.approx(0.05, rel=0.4)
        assert split.slot_sd == pytest.approx(0.01, rel=0.4)
        assert split.slots_per_arm == 2


def test_without_two_blocks_nothing_is_known() -> None:
    run = simulated_run({"a": SimulatedArm(), "b": SimulatedArm()}, blocks=1)
    assert judge(run.head, run.records).variance == []
