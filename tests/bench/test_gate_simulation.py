"""How often a gate is right: what docs/validation/gate.md says, by a smaller simulation."""

from math import sqrt

import pytest

from gate_simulation import World, gates
from variants import further
from webdyno.core.limits import GateAnswer

GATES = 120


def share(world: World, answer: GateAnswer, how_many: int = GATES) -> float:
    ended = list(gates(world, how_many, seed=5))
    return sum(gate.answer is answer for gate in ended) / how_many


def allowed(risk: float, how_many: int = GATES) -> float:
    return risk + 2 * sqrt(risk * (1 - risk) / how_many)


@pytest.mark.parametrize("noise", ["quiet", "restless"])
def test_no_change_does_not_fail(noise: str) -> None:
    assert share(World(0.0, noise, endpoints=3), GateAnswer.FAIL, 100) <= 0.02


def test_no_change_passes_on_a_quiet_machine_and_takes_few_rounds() -> None:
    ended = list(gates(World(0.0, "quiet", endpoints=3), 100))
    assert all(gate.answer is GateAnswer.PASS for gate in ended)
    assert sum(gate.rounds for gate in ended) / len(ended) < 8


def test_ten_per_cent_more_fails_and_only_the_endpoint_that_needs_it_is_named() -> None:
    ended = list(gates(World(0.1, "quiet", endpoints=3), 100))
    assert all(gate.answer is GateAnswer.FAIL for gate in ended)
    assert all(gate.named == {"0"} for gate in ended)


def test_what_lies_at_the_tolerance_passes_in_at_most_five_per_cent() -> None:
    assert share(World(0.05, "quiet", endpoints=1), GateAnswer.PASS) <= allowed(0.05)


@pytest.mark.parametrize("endpoints", [1, further(3)])
def test_many_claims_at_their_margins_fail_in_at_most_five_per_cent(endpoints: int) -> None:
    """The worst case for the risk that Holm shares out: every claim has its chance of bad luck."""
    world = World(0.0, "restless", endpoints, at_margin=True)
    assert share(world, GateAnswer.FAIL) <= allowed(0.05)


def test_a_baseline_that_differs_from_itself_never_fails_the_head() -> None:
    """Head is like the first variant of the baseline; the second one lies 20% below it."""
    world = World(0.0, "quiet", endpoints=1, baseline_again=-0.2)
    assert share(world, GateAnswer.FAIL, 100) == 0


def test_a_failure_by_luck_of_a_build_is_seldom_confirmed_and_a_large_change_is() -> None:
    """Builds of one program lie up to 5% apart: without a change a fifth of gates would fail."""
    lucky = list(gates(World(0.0, "quiet", endpoints=1, luck=0.06), 100, seed=3))
    fails = sum(gate.answer is GateAnswer.FAIL for gate in lucky)
    confirmed = sum(gate.confirmed for gate in lucky)
    assert fails > 8
    assert confirmed < fails / 2
    worse = list(gates(World(0.2, "quiet", endpoints=1, luck=0.03), 50, seed=3))
    assert sum(gate.confirmed for gate in worse) > 45


def test_without_luck_a_confirmed_failure_is_one_of_both() -> None:
    assert all(gate.confirmed for gate in gates(World(0.15, "quiet", endpoints=3), 50))
    assert not any(gate.confirmed for gate in gates(World(0.0, "quiet", endpoints=3), 50))
