"""One round: all variants start, the pre-flight check, warm-ups, then slots in balanced order."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from webdyno.comparison import Stop, question_of
from webdyno.core.errors import OperationError
from webdyno.core.format import duration
from webdyno.core.judgement import ValidityWarning
from webdyno.core.looks import WAKE_AFTER_S, WAKE_S, SlotSettings
from webdyno.core.records import Phase, PreflightRecord, RoundRecord
from webdyno.core.replay import unpack_replay
from webdyno.load.interface import GeneratorError, LoadOrder, LoginError
from webdyno.measure.backend import Questions
from webdyno.measure.capacity_trials import search_capacities
from webdyno.measure.costs import count_instructions, look_at_rest
from webdyno.measure.differences import with_differences
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint, rng_of
from webdyno.measure.preflight import login_refused
from webdyno.measure.variant import OutOfTime, RunningRound
from webdyno.planning.settings import slot_settings, slots_per_variant
from webdyno.servers.service import StackDied
from webdyno.validity.preflight import response_differences

logger = logging.getLogger(__name__)

LONGEST_COUNT_S, LEAST_COUNT_S = 60.0, 0.1
"""Longest slot of those that end after a number of requests, unless `slot_s` is given; and the
least that a limit of time makes of it."""


class PlannedSlot(NamedTuple):
    """One stretch of load on one variant."""

    position: int
    """In the round, from 0."""
    variant: PlannedVariant
    phase: Phase
    turn: int = 0
    """Which of its variant's slots that count, from 0."""
    warmup_s: float = 0.0
    """Length of a warm-up, or of a burst of it."""
    pause_s: float = 0.0
    """Pause after it, before anything else is loaded."""


def run_round(point: RunningPoint, number: int) -> None:
    """Run one round; whatever fails is put on record.

    The point stops, before any load, when responses can't be compared, and when a server died under
    load, unless the run goes on without such variants. Raises OperationError, GeneratorError. Where
    time is a limit, it ends at the slot that would go beyond.
    """
    began, began_at = time.monotonic(), datetime.now(UTC)
    rng = rng_of(point.experiment.measure.seed, point.number, number)
    variants = point.racing()
    names = [variant.name for variant in variants]
    searched = point.experiment.capacity
    order = [] if searched else round_order(names, slots_per_variant(point.data), rng)
    logger.debug("round %d at point %d, with %s", number, point.number, ", ".join(names))
    times = slot_settings(point.data)
    slots = [] if searched else plan_slots(variants, order, times, rng)
    point.progress.round_begins(point.data.point, number, len(slots))
    with RunningRound(point, number) as running:
        for variant in rng.sample(variants, len(variants)):
            running.start(variant)
        preflight = run_preflight(variants, running)
        point.keep(preflight)
        if differences := response_differences(preflight, point.experiment):
            give_up(point, number, differences)
            return
        ready_s = {name: up.ready_s for name, up in running.up.items()}
        try:
            rested_s = _measure(running, slots, times, rng)
            if searched is not None:
                order = search_capacities(running, variants, searched, times, rng)
            count_instructions(running, variants, times)
            rest_s = point.experiment.measure.rest_s
            if rest_s and point.left_s > 2 * rest_s * len(variants):
                look_at_rest(running, rng.sample(variants, len(variants)), rest_s)
        except OutOfTime:
            why = f"{duration(point.experiment.measure.budget_s)} were over in round {number}"
            point.keep_stop(Stop("time", f"{why}, which doesn't count"))
            return
        except StackDied as death:
            point.has_stopped = not point.goes_on_after(death.what)
            return
        except LoginError as failed:
            refuse_login(point, number, failed)
            return
        except GeneratorError as failure:
            point.keep_incident(number, None, failure)
            raise
    ended = RoundRecord(
        round=number,
        order=order,
        started_at=began_at,
        took_s=time.monotonic() - began,
        rested_s=rested_s,
        ready_s=ready_s,
    )
    point.keep(ended)
    point.progress.round_ends(ended, point.data)


def round_order(variants: Sequence[str], slots_per_variant: int, rng: Random) -> list[str]:
    """Return the variant of each slot of a round.

    Each variant gets `slots_per_variant` slots (an even number), and the mean position of its slots
    within the round is the same for all variants. Two variants go ABBA: a drift that is linear over
    the round then weighs equally on both. More variants take turns in random order, every second
    round reversed. Which variant begins is drawn (randomised multiple interleaved trials: Abedi &
    Brecht, ICPE 2017).
    """
    if slots_per_variant % 2:
        raise ValueError("slots_per_variant must be even for a balanced order")
    order: list[str] = []
    for _ in range(slots_per_variant // 2):
        there = rng.sample(list(variants), len(variants))
        order += there + there[::-1]
    return order


def plan_slots(
    variants: Sequence[PlannedVariant], order: Sequence[str], times: SlotSettings, rng: Random
) -> list[PlannedSlot]:
    """Put warm-ups, in an order of their own, before the slots that count.

    A warm-up that is no longer than the variant's ramp-up is that of its first slot. Longer ones
    are slots of their own, since costs per request are counted over ramp-ups as well: those of a
    variant that warms up aren't what is measured. So are bursts, each of them.
    """
    by_name = {variant.name: variant for variant in variants}
    slots: list[PlannedSlot] = []
    for variant in rng.sample(variants, len(variants)):
        name = variant.name
        if name in times.in_bursts or times.warmup_s[name] > _ramp_up_s(variant, times):
            slots += [
                PlannedSlot(place, variant, "warmup", warmup_s=load_s, pause_s=times.pause_s(name))
                for place, load_s in enumerate(times.warmup_loads_s(name), len(slots))
            ]
    return slots + [
        PlannedSlot(place, by_name[name], "measure", order[: place - len(slots)].count(name))
        for place, name in enumerate(order, len(slots))
    ]


def run_preflight(
    variants: Sequence[PlannedVariant], running: RunningRound, *, by_rules: bool = False
) -> PreflightRecord:
    """Ask all variants the same before the load, where they speak HTTP.

    `by_rules`: hold them to the rules of their sites as well, which change what databases hold.
    """
    point, up = running.point, running.up
    broken = {
        variant.name: what
        for variant in variants
        if by_rules and (what := point.testbed.servers.broken_rule(variant.name))
    }
    responses = {
        variant.name: point.testbed.clients.ask(
            variant.name,
            up[variant.name].url,
            Questions(
                requests=variant.preflight_requests,
                load=variant.load,
                ignored=point.experiment.ignore,
                users=variant.users,
                allow_remote=up[variant.name].is_elsewhere,
            ),
        )
        for variant in variants
        if variant.stack.protocol == "http"
    }
    preflight = PreflightRecord(
        round=running.number,
        responses=with_differences(responses),
        facts={variant.name: dict(up[variant.name].facts) for variant in variants},
        ran_before=[variant.name for variant in variants if variant.stack.runs_already],
        round_trips_s={
            variant.name: trip_s
            for variant in variants
            if (trip_s := up[variant.name].round_trip_s) is not None
        },
        broken_rules=broken,
    )
    return point.folder.cleaned(preflight)


def _measure(
    running: RunningRound, slots: Sequence[PlannedSlot], times: SlotSettings, rng: Random
) -> float:
    """Measure a round's slots, and return how long they waited for servers to rest."""
    most_s = min(times.rest_s * len(running.up), max(running.point.left_s, 0.0))
    rested_s = 0.0
    loaded_at = dict.fromkeys(running.up, time.monotonic())
    for slot in slots:
        rested_s += _wait_for_rest(running, most_s - rested_s)
        order = _slot_order(running, slot, times, rng)
        if slot.phase == "measure":
            _wake(running, slot, loaded_at[slot.variant.name], order)
        running.measure(slot.position, slot.variant, slot.phase, order)
        loaded_at[slot.variant.name] = time.monotonic()
        time.sleep(slot.pause_s)
    return rested_s


def _wake(running: RunningRound, slot: PlannedSlot, loaded_at: float, order: LoadOrder) -> None:
    """Load what waited long for its turn, unless its slot has no time then.

    Nor where no warm-up is wanted: that is to show what servers do when they begin.
    """
    point, variant = running.point, slot.variant
    slot_s = 0.0 if order.count is not None else order.load_s
    ramp_s = variant.load.connection_ramp_s
    if (
        time.monotonic() - loaded_at <= WAKE_AFTER_S
        or point.experiment.warmup_s_of(variant.name) == 0
        or point.left_s <= ramp_s + WAKE_S + slot_s
    ):
        return
    name = f"round {running.number} before slot {slot.position}"
    woken = running.order(variant, name, ramp_s + WAKE_S, turn=-1)
    woken = replace(woken, connection_ramp_s=ramp_s)
    running.measure(slot.position, variant, "wake-up", woken)


def _wait_for_rest(running: RunningRound, most_s: float) -> float:
    """Wait until all servers rest, and return for how long; all of `most_s` where they don't.

    One wait may take what others leave: a compiler that works on after a warm-up needs most of it
    at once. What servers do after `most_s` isn't left of their load.
    """
    if most_s <= 0.0:
        return 0.0
    began = time.monotonic()
    rests = running.waits_for_rest(most_s)
    return min(time.monotonic() - began, most_s) if rests else most_s


def _slot_order(
    running: RunningRound, slot: PlannedSlot, times: SlotSettings, rng: Random
) -> LoadOrder:
    point, variant = running.point, slot.variant
    name = f"round {running.number} slot {slot.position}"
    if slot.phase == "warmup":
        return running.order(variant, name, slot.warmup_s)
    if variant.load.count is not None:
        longest_s = point.experiment.measure.slot_s or LONGEST_COUNT_S
        longest_s = max(min(longest_s, point.left_s), LEAST_COUNT_S)
        order = running.order(variant, name, longest_s, turn=slot.turn)
        return replace(order, count=variant.load.count)
    ramp_up_s = _ramp_up_s(variant, times) + rng.uniform(0.0, times.phase_s.get(variant.name, 0.0))
    ramp_s = variant.load.connection_ramp_s
    order = running.order(
        variant, name, times.window_s, ramp_up_s=ramp_s + ramp_up_s, turn=slot.turn
    )
    return with_replay(replace(order, connection_ramp_s=ramp_s))


def with_replay(order: LoadOrder) -> LoadOrder:
    """Return an order with a stretch of the log that its load replays, if it does.

    Its seed draws it; variants that replay the same log have the same stretch in their windows.
    """
    load = order.load
    if load.arrivals != "replay" or load.replay is None or load.rate_per_s is None:
        return order
    begin, ramp_up_s = Random(order.seed).random(), order.ramp_up_s
    stretch = unpack_replay(load.replay).stretch(
        begin, order.duration_s, load.rate_per_s, ramp_up_s=ramp_up_s
    )
    return replace(order, replay=stretch)


def _ramp_up_s(variant: PlannedVariant, times: SlotSettings) -> float:
    """Return the ramp-up of a variant's slots; those that a number of requests ends have none."""
    return 0.0 if variant.load.count is not None else times.ramp_up_s[variant.name]


def give_up(point: RunningPoint, number: int, differences: Sequence[ValidityWarning]) -> None:
    """Stop the point, or go on without the variants that answer otherwise, if enough stay."""
    unlike = {
        difference.variant: difference.what
        for difference in reversed(differences)
        if difference.variant is not None
    }
    staying = len(point.racing()) - len(unlike)
    if not question_of(point.experiment).spares_variants or staying < 2 or len(unlike) > staying:
        point.keep_stop(Stop("different-responses", differences[0].what))
        return
    for variant, what in unlike.items():
        point.keep_incident(number, variant, OperationError(what))
        point.progress.notice(f"{what}: the run continues without it")


def refuse_login(point: RunningPoint, number: int, failed: LoginError) -> None:
    """Put on record that a variant didn't let a user in, and give up as the pre-flight check does.

    That check has one user log in; whether the others' passwords are right is known only now.
    """
    (variant,) = (each for each in point.variants if each.name == failed.variant)
    assert variant.users is not None  # noqa: S101 (they logged in)
    responses = {variant.name: [login_refused(variant.users, failed)]}
    refused = PreflightRecord(round=number, responses=responses, facts={}, ran_before=[])
    refused = point.folder.cleaned(refused)
    point.keep(refused)
    give_up(point, number, response_differences(refused, point.experiment))
