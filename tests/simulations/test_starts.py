"""Gates of equal revisions whose starts are in one of two states, by a smaller simulation."""

import pytest

from simulations.starts import WORLDS, World, gates
from webdyno.core.limits import GateAnswer

GATES = 20


@pytest.mark.parametrize("world", [it for it in WORLDS if it.mixing is not None])
def test_a_gate_never_fails_for_starts_that_differ_and_says_that_they_do(world: World) -> None:
    ended = list(gates(world, GATES, seed=3))
    assert not [it for it in ended if it.answer is GateAnswer.FAIL]
    assert sum(it.reported for it in ended) >= 0.9 * GATES


def test_with_more_rounds_most_are_answered() -> None:
    ended = list(gates(World(0.12, 0.5), GATES))
    assert sum(it.answer is GateAnswer.PASS for it in ended) >= 0.9 * GATES
    assert max(it.rounds for it in ended) > 30


def test_a_small_difference_between_starts_takes_few_rounds() -> None:
    ended = list(gates(World(0.05, 0.5), GATES))
    assert sum(it.rounds for it in ended) < 15 * GATES
