"""Slot orders are balanced, drawn per block, and repeatable."""

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.definitions import Catalogue
from webdyno.model.load import Load
from webdyno.model.pilot import SlotSettings
from webdyno.run.arm import RunningBlock
from webdyno.run.backend import StartedArm
from webdyno.run.block import block_order, plan_slots
from webdyno.run.planned import PlannedArm, plan_arms
from webdyno.run.point import RunningPoint, rng_of

ARMS = st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True)
EVEN = st.integers(1, 5).map(lambda half: 2 * half)


@given(ARMS, EVEN, st.integers(), st.integers(1, 30))
def test_every_arm_has_its_slots_at_the_same_mean_position(
    arms: list[str], slots_per_arm: int, seed: int, block: int
) -> None:
    order = block_order(arms, slots_per_arm, rng_of(seed, 0, block))
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
    first = block_order(arms, slots_per_arm, rng_of(seed, 0, block))
    assert first == block_order(arms, slots_per_arm, rng_of(seed, 0, block))


def test_two_arms_go_abba_and_either_may_begin() -> None:
    orders = {"".join(block_order(["A", "B"], 2, rng_of(1, 0, block))) for block in range(50)}
    assert orders == {"ABBA", "BAAB"}


def test_an_odd_number_of_slots_cannot_be_balanced() -> None:
    with pytest.raises(ValueError, match="even"):
        block_order(["A", "B"], 3, rng_of(1, 0, 1))


def drawn(arm: PlannedArm, seed: int, block: int, turn: int) -> int:
    """The seed of what an arm is asked in one of its turns."""
    experiment = SimpleNamespace(measure=SimpleNamespace(seed=seed))
    point = SimpleNamespace(experiment=experiment, number=0)
    running = RunningBlock(cast("RunningPoint", point), block)
    running.up[arm.name] = cast("StartedArm", SimpleNamespace(url="http://127.0.0.1:1"))
    return running.order(arm, "a slot", 1.0, turn=turn).seed


def test_chance_is_the_same_for_all_arms_of_a_turn_and_never_again() -> None:
    """Else all blocks had the same bursts of arrivals: luck that no interval would show."""
    catalogue = Catalogue.load()
    one, other = plan_arms(catalogue.experiment("static-hello"), catalogue)
    turns = [(seed, block, turn) for seed in (1, 2) for block in (1, 2) for turn in (0, 1)]
    assert len({drawn(one, *each) for each in turns}) == len(turns)
    assert [drawn(one, *each) for each in turns] == [drawn(other, *each) for each in turns]


def planned(load: Load) -> list[str]:
    """The phase of each slot: Apache warms up for longer than its lead-in, nginx doesn't."""
    catalogue = Catalogue.load()
    arms = plan_arms(catalogue.experiment("static-hello"), catalogue)
    times = SlotSettings(
        warmup_s={"nginx": 0.05, "apache-event": 0.9},
        lead_in_s={"nginx": 0.1, "apache-event": 0.2},
        window_s=0.5,
    )
    loaded = [replace(arm, load=load) for arm in arms]
    slots = plan_slots(loaded, ["nginx", "apache-event"], times, rng_of(1, 0, 1))
    assert [slot.position for slot in slots] == list(range(len(slots)))
    return [f"{slot.phase} {slot.arm.name}" for slot in slots]


def test_a_warm_up_is_a_slot_of_its_own_only_where_the_lead_in_is_shorter() -> None:
    measured = ["measure nginx", "measure apache-event"]
    assert planned(Load(connections=4)) == ["warmup apache-event", *measured]
    counted = planned(Load(connections=4, requests=1000))  # such slots have no lead-in
    assert sorted(counted[:2]) == ["warmup apache-event", "warmup nginx"]
    assert counted[2:] == measured


def test_a_warm_up_in_bursts_is_a_slot_and_a_pause_for_each() -> None:
    catalogue = Catalogue.load()
    arms = plan_arms(catalogue.experiment("static-hello"), catalogue)
    times = SlotSettings(
        warmup_s={"nginx": 0.9, "apache-event": 1.2},
        lead_in_s={"nginx": 0.1, "apache-event": 2.0},
        in_bursts=["apache-event"],
        window_s=0.5,
    )
    slots = plan_slots(arms, ["nginx", "apache-event"], times, rng_of(1, 0, 1))
    assert [slot.position for slot in slots] == list(range(6))
    warmups = [(it.arm.name, it.warmup_s, it.pause_s) for it in slots if it.phase == "warmup"]
    bursts = [("apache-event", pytest.approx(0.4), 0.5)] * 3
    assert sorted(warmups) == [*bursts, ("nginx", 0.9, 0.0)]
    assert times.warmup_takes_s("apache-event") == pytest.approx(1.2 + 3 * 0.5)
    assert times.warmup_takes_s("nginx") == 0.9
