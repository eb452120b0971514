"""Noise split into restarts and slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedRun, SimulatedVariant, point_data, simulated_run
from webdyno.comparison import judge
from webdyno.comparison.stop import (
    MOST_SLOTS,
    PILOT_ROUNDS,
    best_slots,
    choice,
    chosen_slots_per_variant,
    random_effects,
    round_costs_s,
)
from webdyno.core.measure import FIRST_SLOTS, Measure
from webdyno.core.records import Record, RoundRecord


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


def test_a_judgement_shows_where_the_noise_is() -> None:
    run = simulated_run(
        {"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=30, restart_sd=0.05, slot_sd=0.01
    )
    for split in judge(run.data).variance:
        assert split.metric == "throughput_rps"
        assert split.restart_sd == pytest.approx(0.05, rel=0.4)
        assert split.slot_sd == pytest.approx(0.01, rel=0.4)
        assert split.slots_per_variant == 2


def test_without_two_rounds_nothing_is_known() -> None:
    run = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1)
    assert judge(run.data).variance == []


VARIANTS = {
    "a": SimulatedVariant(),
    "b": SimulatedVariant(throughput_rps=50_000),
    "c": SimulatedVariant(),
}
DEAR_STARTS = Measure(warmup_s=20.0, seed=1)


def rounds(run: SimulatedRun, count: int) -> list[Record]:
    """The records up to the end of so many rounds, and the beginning of the next one."""
    ends = [number for number, it in enumerate(run.records) if isinstance(it, RoundRecord)]
    return run.records[: ends[count - 1] + 5]


@pytest.mark.parametrize(
    ("restart_sd", "slot_sd", "slots"), [(0.05, 0.01, FIRST_SLOTS), (0.001, 0.05, MOST_SLOTS)]
)
def test_noisy_slots_get_more_of_them(restart_sd: float, slot_sd: float, slots: int) -> None:
    run = simulated_run(
        VARIANTS, rounds=8, measure=DEAR_STARTS, restart_sd=restart_sd, slot_sd=slot_sd, seed=3
    )
    assert chosen_slots_per_variant(run.data) == slots


def test_the_first_rounds_alone_decide() -> None:
    """So that a run that is resumed, and every later round, chooses alike."""
    run = simulated_run(
        VARIANTS, rounds=12, measure=DEAR_STARTS, restart_sd=0.001, slot_sd=0.05, seed=3
    )
    chosen = [
        chosen_slots_per_variant(point_data(rounds(run, count), run.head.experiment))
        for count in range(1, 12)
    ]
    before = PILOT_ROUNDS - 1
    assert chosen == [FIRST_SLOTS] * before + [MOST_SLOTS] * (11 - before)


def test_a_number_that_was_asked_for_stays() -> None:
    measure = Measure(slots_per_variant=2, seed=1)
    run = simulated_run(VARIANTS, measure=measure, restart_sd=0.001, slot_sd=0.05)
    assert chosen_slots_per_variant(run.data) == 2


def test_the_difference_of_the_variants_has_no_part_in_it() -> None:
    """Else intervals would lean."""
    fast = VARIANTS | {"b": SimulatedVariant(throughput_rps=160_000)}
    runs = [
        simulated_run(variants, restart_sd=0.01, slot_sd=0.04, seed=5)
        for variants in (VARIANTS, fast)
    ]
    first, second = (chosen_slots_per_variant(run.data) for run in runs)
    assert first == second


def test_without_a_valid_slot_nothing_is_chosen() -> None:
    broken = {name: SimulatedVariant(wrong_status=500) for name in VARIANTS}
    run = simulated_run(broken)
    assert chosen_slots_per_variant(run.data) == FIRST_SLOTS


def test_costs_are_reported_by_the_clock() -> None:
    """Simulated slots take 0.52 s, from one to the next; starts 0.4 s with two warm-ups of 1 s."""
    two = {"a": SimulatedVariant(), "b": SimulatedVariant()}
    run = simulated_run(two, rounds=3, measure=Measure(warmup_s=1.0, slot_s=0.5, seed=1))
    measured = run.data
    assert round_costs_s(measured, 2) == pytest.approx(((0.4 + 2 * 1.02) / 2, 0.52))
    excluded = measured.without([(this_round.record.round, 3) for this_round in measured.rounds])
    assert round_costs_s(excluded, 2) == pytest.approx(round_costs_s(measured, 2))
    assert round_costs_s(point_data([]), 2) == (0, 0)


def test_rounds_get_longer_only_where_that_saves_time() -> None:
    cheap = {"start_s": 0.15, "slot_s": 0.6}
    assert choice(restart=0.0, slot=0.01, **cheap, first=2) == 2
    assert choice(restart=0.01, slot=0.0, **cheap, first=2) == 2
    dear = {"start_s": 2.5, "slot_s": 0.6}
    assert choice(restart=0.0, slot=0.01, **dear, first=2) == 8
    assert choice(restart=0.01, slot=0.01, **dear, first=2) == 2
    assert choice(restart=0.002, slot=0.01, **dear, first=2) == 4
    assert choice(restart=0.01, slot=0.0, **dear, first=4) == 4
    assert choice(restart=0.0, slot=0.01, **dear, first=10) == 10
