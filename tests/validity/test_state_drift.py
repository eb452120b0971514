"""How often slots are called dearer that are, and that aren't, by a smaller simulation."""

import pytest

from simulations.state import STEADY, World, reported
from variants import further

QUIET, RESTLESS, *OTHERS = STEADY
RUNS = 100


@pytest.mark.parametrize("world", [QUIET, *map(further, STEADY[1:])], ids=lambda it: it.name)
@pytest.mark.parametrize("slots", [4, further(2), further(8)])
def test_steady_servers_are_seldom_called_dearer(world: World, slots: int) -> None:
    assert sum(reported(world, RUNS, slots=slots)) <= 0.02 * RUNS + 2


@pytest.mark.parametrize("in_database", [True, False])
def test_two_per_cent_a_slot_are_reported(in_database: bool) -> None:
    found = list(reported(QUIET, 30, per_slot=0.02, in_database=in_database))
    assert sum(found) >= 0.9 * len(found)


def test_what_a_machine_hides_the_database_shows() -> None:
    """Its speed changes by a tenth from slot to slot, for all services alike."""
    assert sum(reported(RESTLESS, 30, per_slot=0.02, rounds=20)) >= 25
    assert sum(reported(RESTLESS, 30, per_slot=0.02, rounds=20, in_database=False)) < 20


@pytest.mark.parametrize(("per_slot", "fewest"), [(0.0, 0), (0.003, 27), (0.01, 27)])
def test_what_nothing_puts_back_is_reported_from_round_to_round(
    per_slot: float, fewest: int
) -> None:
    found = list(reported(QUIET, 30, per_slot=per_slot, has_database=False))
    assert sum(found) >= fewest
    if not per_slot:
        assert sum(found) <= 2
