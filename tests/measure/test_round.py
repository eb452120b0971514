"""Slot orders are balanced, drawn per round, and repeatable."""

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.config import Catalogue
from webdyno.core.load import Load
from webdyno.core.looks import SlotSettings
from webdyno.core.records import Phase
from webdyno.load.interface import LoadOrder
from webdyno.measure.backend import StartedVariant
from webdyno.measure.planned import PlannedVariant, plan_variants
from webdyno.measure.point import RunningPoint, rng_of
from webdyno.measure.round import (
    PlannedSlot,
    _measure,
    _slot_order,
    _wait_for_rest,
    plan_slots,
    round_order,
)
from webdyno.measure.variant import RunningRound

VARIANTS = st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True)
EVEN = st.integers(1, 5).map(lambda half: 2 * half)


@given(VARIANTS, EVEN, st.integers(), st.integers(1, 30))
def test_every_variant_has_its_slots_at_the_same_mean_position(
    variants: list[str], slots_per_variant: int, seed: int, round_number: int
) -> None:
    order = round_order(variants, slots_per_variant, rng_of(seed, 0, round_number))
    positions = defaultdict(list)
    for position, variant in enumerate(order):
        positions[variant].append(position)
    assert {len(found) for found in positions.values()} == {slots_per_variant}
    assert len({sum(found) for found in positions.values()}) == 1
    assert set(positions) == set(variants)


@given(VARIANTS, EVEN, st.integers(), st.integers(1, 30))
def test_a_resumed_run_draws_the_same_order(
    variants: list[str], slots_per_variant: int, seed: int, round_number: int
) -> None:
    first = round_order(variants, slots_per_variant, rng_of(seed, 0, round_number))
    assert first == round_order(variants, slots_per_variant, rng_of(seed, 0, round_number))


def test_two_variants_go_abba_and_either_may_begin() -> None:
    orders = {
        "".join(round_order(["A", "B"], 2, rng_of(1, 0, round_number)))
        for round_number in range(50)
    }
    assert orders == {"ABBA", "BAAB"}


def test_an_odd_number_of_slots_cannot_be_balanced() -> None:
    with pytest.raises(ValueError, match="even"):
        round_order(["A", "B"], 3, rng_of(1, 0, 1))


class _Round(RunningRound):
    """A round in which variants are said to run, by a clock of the test's own."""

    def __init__(
        self, seed: int, number: int, *variants: str, warmup_s: float | None = None
    ) -> None:
        measure = SimpleNamespace(seed=seed)
        experiment = SimpleNamespace(measure=measure, warmup_s_of=lambda _: warmup_s)
        point = SimpleNamespace(experiment=experiment, number=0, left_s=99.0)
        super().__init__(cast("RunningPoint", point), number)
        up = SimpleNamespace(url="http://127.0.0.1:1", is_elsewhere=False)
        self.up = dict.fromkeys(variants, cast("StartedVariant", up))
        self.now_s, self.loads = 0.0, list[tuple[int, str, str]]()

    def measure(  # type: ignore[override]
        self, position: int, variant: PlannedVariant, phase: Phase, order: LoadOrder
    ) -> None:
        self.loads.append((position, phase, variant.name))
        self.now_s += order.load_s


def drawn(variant: PlannedVariant, seed: int, round_number: int, turn: int) -> int:
    """The seed of what a variant is asked in one of its turns."""
    running = _Round(seed, round_number, variant.name)
    return running.order(variant, "a slot", 1.0, turn=turn).seed


def test_chance_is_the_same_for_all_variants_of_a_turn_and_never_again() -> None:
    """Else all rounds had the same bursts of arrivals: luck that no interval would show."""
    catalogue = Catalogue.load()
    one, other = plan_variants(catalogue.experiment("static-hello"), catalogue)
    turns = [
        (seed, round_number, turn) for seed in (1, 2) for round_number in (1, 2) for turn in (0, 1)
    ]
    assert len({drawn(one, *each) for each in turns}) == len(turns)
    assert [drawn(one, *each) for each in turns] == [drawn(other, *each) for each in turns]


def planned(load: Load) -> list[str]:
    """The phase of each slot: Apache warms up for longer than its ramp-up, nginx doesn't."""
    catalogue = Catalogue.load()
    variants = plan_variants(catalogue.experiment("static-hello"), catalogue)
    times = SlotSettings(
        warmup_s={"nginx": 0.05, "apache-event": 0.9},
        ramp_up_s={"nginx": 0.1, "apache-event": 0.2},
        window_s=0.5,
    )
    loaded = [replace(variant, load=load) for variant in variants]
    slots = plan_slots(loaded, ["nginx", "apache-event"], times, rng_of(1, 0, 1))
    assert [slot.position for slot in slots] == list(range(len(slots)))
    return [f"{slot.phase} {slot.variant.name}" for slot in slots]


def test_a_warm_up_is_a_slot_of_its_own_only_where_the_ramp_up_is_shorter() -> None:
    measured = ["measure nginx", "measure apache-event"]
    assert planned(Load(connections=4)) == ["warmup apache-event", *measured]
    counted = planned(Load(connections=4, count=1000))  # such slots have no ramp-up
    assert sorted(counted[:2]) == ["warmup apache-event", "warmup nginx"]
    assert counted[2:] == measured


def test_a_ramp_of_connections_comes_before_the_ramp_up_of_slots_that_count() -> None:
    catalogue = Catalogue.load()
    variant, _ = plan_variants(catalogue.experiment("static-hello"), catalogue)
    ramped = replace(variant, load=Load(connections=4, connection_ramp_s=3))
    name = variant.name
    times = SlotSettings(warmup_s={name: 9.0}, ramp_up_s={name: 0.5}, window_s=1.0)
    slots = [
        PlannedSlot(0, ramped, "warmup", warmup_s=9.0),
        PlannedSlot(1, ramped, "measure"),
    ]
    running = _Round(1, 1, name)
    warmup, slot = (_slot_order(running, each, times, rng_of(1, 0, 1)) for each in slots)
    assert (warmup.connection_ramp_s, warmup.ramp_up_s) == (0, 0)
    assert (slot.connection_ramp_s, slot.ramp_up_s, slot.duration_s) == (3, 3.5, 1.0)


def test_a_warm_up_in_bursts_is_a_slot_and_a_pause_for_each() -> None:
    catalogue = Catalogue.load()
    variants = plan_variants(catalogue.experiment("static-hello"), catalogue)
    times = SlotSettings(
        warmup_s={"nginx": 0.9, "apache-event": 1.2},
        ramp_up_s={"nginx": 0.1, "apache-event": 2.0},
        in_bursts=["apache-event"],
        window_s=0.5,
    )
    slots = plan_slots(variants, ["nginx", "apache-event"], times, rng_of(1, 0, 1))
    assert [slot.position for slot in slots] == list(range(6))
    warmups = [(it.variant.name, it.warmup_s, it.pause_s) for it in slots if it.phase == "warmup"]
    bursts = [("apache-event", pytest.approx(0.4), 0.5)] * 3
    assert sorted(warmups) == [*bursts, ("nginx", 0.9, 0.0)]
    assert times.warmup_takes_s("apache-event") == pytest.approx(1.2 + 3 * 0.5)
    assert times.warmup_takes_s("nginx") == 0.9


@pytest.mark.parametrize("is_set_to_none", [False, True])
def test_what_waited_for_others_is_loaded_before_its_slot_counts(
    is_set_to_none: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pools close what is idle: Koa's first slot had 37% less throughput than its second."""
    catalogue = Catalogue.load()
    a, b = plan_variants(catalogue.experiment("static-hello"), catalogue)
    no_ramp = {a.name: 0.0, b.name: 0.0}
    times = SlotSettings(warmup_s={a.name: 5.0, b.name: 5.0}, ramp_up_s=no_ramp, window_s=2.0)
    slots = plan_slots([a, b], [a.name, b.name, b.name, a.name], times, rng_of(1, 0, 1))
    first = slots[0].variant.name
    running = _Round(1, 1, a.name, b.name, warmup_s=0 if is_set_to_none else None)
    monkeypatch.setattr("webdyno.measure.round.time.monotonic", lambda: running.now_s)
    _measure(running, slots, times, rng_of(1, 0, 1))
    woken = [(position, name) for position, phase, name in running.loads if phase == "wake-up"]
    counted = [position for position, phase, _ in running.loads if phase != "wake-up"]
    assert counted == list(range(len(slots)))
    expected = [(2 if first == a.name else 3, first), (5, a.name)]
    assert woken == ([] if is_set_to_none else expected)


class _Servers:
    """Servers that work on for some seconds, as a clock of the test's own says."""

    def __init__(self, works_s: float) -> None:
        self.works_s, self.now_s = works_s, 0.0

    def waits_for_rest(self, most_s: float) -> bool:
        took_s = min(self.works_s, most_s)
        self.works_s -= took_s
        self.now_s += took_s
        return self.works_s <= 0


@pytest.mark.parametrize(("works_s", "waited_s"), [(0.0, 0.0), (12.0, 12.0), (40.0, 30.0)])
def test_one_wait_for_rest_may_take_what_others_leave(
    works_s: float, waited_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = _Servers(works_s)
    monkeypatch.setattr("webdyno.measure.round.time.monotonic", lambda: servers.now_s)
    assert _wait_for_rest(cast("RunningRound", servers), 30.0) == waited_s


def test_a_round_that_has_waited_long_enough_waits_no_more() -> None:
    assert _wait_for_rest(cast("RunningRound", None), 0.0) == 0.0
