"""Slot orders are balanced, drawn per block, and repeatable."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.run.block import block_order, block_rng

ARMS = st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True)
EVEN = st.integers(1, 5).map(lambda half: 2 * half)


@given(ARMS, EVEN, st.integers(), st.integers(1, 30))
def test_every_arm_has_its_slots_at_the_same_mean_position(
    arms: list[str], slots_per_arm: int, seed: int, block: int
) -> None:
    order = block_order(arms, slots_per_arm, block_rng(seed, 0, block))
    positions = defaultdict(list)
    for position, arm in enumerate(order):
        positions[arm].append(position)
    assert {len(found) for found in positions.values()} == {slots_per_arm}
    assert len({sum(found) for found in positions.values()}) == 1
    assert set(positions) == set(arms)


@given(ARMS, EVEN, st.integers(), st.integers(1, 30))
def test_a_resumed_run_draws_the_same_order(
    arms: list[str], slots_per_arm: int, seed: int, block: int
) -> None:
    first = block_order(arms, slots_per_arm, block_rng(seed, 0, block))
    assert first == block_order(arms, slots_per_arm, block_rng(seed, 0, block))


def test_two_arms_go_abba_and_either_may_begin() -> None:
    orders = {"".join(block_order(["A", "B"], 2, block_rng(1, 0, block))) for block in range(50)}
    assert orders == {"ABBA", "BAAB"}


def test_an_odd_number_of_slots_cannot_be_balanced() -> None:
    with pytest.raises(ValueError, match="even"):
        block_order(["A", "B"], 3, block_rng(1, 0, 1))
