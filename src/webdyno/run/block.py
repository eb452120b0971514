"""One block: all arms start, the pre-flight check, warm-ups, then slots in balanced order."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from webdyno.generator.interface import GeneratorError, LoadOrder
from webdyno.judge import Stop, question_of
from webdyno.judge.settings import slot_settings, slots_per_arm
from webdyno.judge.validity.preflight import answer_differences
from webdyno.model.errors import OperationError
from webdyno.model.judgement import ValidityWarning
from webdyno.model.load import unpacked
from webdyno.model.pilot import SlotSettings
from webdyno.model.records import BlockRecord, PreflightRecord
from webdyno.run.arm import Phase, RunningBlock
from webdyno.run.backend import Questions
from webdyno.run.capacity import search_capacities
from webdyno.run.planned import PlannedArm
from webdyno.run.point import RunningPoint, prepared, rng_of
from webdyno.run.preflight import with_differences
from webdyno.stack.service import StackDied

LONGEST_COUNT_S = 60.0
"""Longest slot of those that end after a number of requests, unless `slot_s` is given."""


class PlannedSlot(NamedTuple):
    """One stretch of load on one arm."""

    position: int
    """In the block, from 0."""
    arm: PlannedArm
    phase: Phase
    turn: int = 0
    """Which of its arm's slots that count, from 0."""
    warmup_s: float = 0.0
    """Length of a warm-up, or of a burst of it."""
    pause_s: float = 0.0
    """After it, before anything else is loaded."""


def run_block(point: RunningPoint, number: int) -> None:
    """Run one block; whatever fails is put on record.

    The point stops when the pre-flight check shows answers that can't be compared (no load is made
    then) and when a server died under load, unless the run goes on without such arms. Servers that
    don't start raise OperationError, a load generator that fails GeneratorError.
    """
    began, began_at = time.monotonic(), datetime.now(UTC)
    rng = rng_of(point.experiment.measure.seed, point.number, number)
    arms = point.racing()
    names = [arm.name for arm in arms]
    searched = point.experiment.capacity
    order = [] if searched else block_order(names, slots_per_arm(point.data), rng)
    times = slot_settings(point.data)
    slots = [] if searched else plan_slots(arms, order, times, rng)
    point.progress.block_begins(point.data.point, number, len(slots))
    with prepared(point, number), RunningBlock(point, number) as running:
        for arm in rng.sample(arms, len(arms)):
            running.start(arm)
        preflight = run_preflight(arms, running)
        point.keep(preflight)
        if differences := answer_differences(preflight, point.experiment):
            give_up(point, number, differences)
            return
        ready_s = {name: up.ready_s for name, up in running.up.items()}
        try:
            _measure(running, slots, times, rng)
            if searched is not None:
                order = search_capacities(running, arms, searched, times, rng)
        except StackDied as death:
            point.has_stopped = not point.goes_on_without(point.failed)
            if not point.has_stopped:
                point.progress.notice(f"{death.what}: the run goes on without it")
            return
        except GeneratorError as failure:
            point.keep_incident(number, None, failure)
            raise
    ended = BlockRecord(
        block=number,
        order=order,
        started_at=began_at,
        took_s=time.monotonic() - began,
        ready_s=ready_s,
    )
    point.keep(ended)
    point.progress.block_ends(ended, point.data)


def give_up(point: RunningPoint, number: int, differences: Sequence[ValidityWarning]) -> None:
    """Stop the point, or go on without the arms that answer otherwise, if enough stay."""
    unlike = {
        difference.arm: difference.what
        for difference in reversed(differences)
        if difference.arm is not None
    }
    staying = len(point.racing()) - len(unlike)
    if not question_of(point.experiment).spares_arms or staying < 2 or len(unlike) > staying:
        point.keep_stop(Stop("different-answers", differences[0].what))
        return
    for arm, what in unlike.items():
        point.keep_incident(number, arm, OperationError(what))
        point.progress.notice(f"{what}: the run goes on without it")


def block_order(arms: Sequence[str], slots_per_arm: int, rng: Random) -> list[str]:
    """Give the arm of each slot of a block.

    Each arm gets `slots_per_arm` slots (an even number), and the mean position of its slots within
    the block is the same for all arms. Two arms go ABBA: a drift that is linear over the block then
    weighs equally on both. More arms take turns in random order, every second round reversed. Which
    arm begins is drawn (randomised multiple interleaved trials: Abedi & Brecht, ICPE 2017).
    """
    if slots_per_arm % 2:
        raise ValueError("slots_per_arm must be even for a balanced order")
    order: list[str] = []
    for _ in range(slots_per_arm // 2):
        there = rng.sample(list(arms), len(arms))
        order += there + there[::-1]
    return order


def plan_slots(
    arms: Sequence[PlannedArm], order: Sequence[str], times: SlotSettings, rng: Random
) -> list[PlannedSlot]:
    """Put warm-ups, in an order of their own, before the slots that count.

    A warm-up that is no longer than the arm's lead-in is that of its first slot. Longer ones are
    slots of their own, since costs per request are counted over lead-ins as well: those of an arm
    that warms up aren't what is measured. So are bursts, each of them.
    """
    by_name = {arm.name: arm for arm in arms}
    slots: list[PlannedSlot] = []
    for arm in rng.sample(arms, len(arms)):
        name = arm.name
        if name in times.in_bursts or times.warmup_s[name] > _lead_in_s(arm, times):
            slots += [
                PlannedSlot(place, arm, "warmup", warmup_s=load_s, pause_s=times.pause_s(name))
                for place, load_s in enumerate(times.warmup_loads_s(name), len(slots))
            ]
    return slots + [
        PlannedSlot(place, by_name[name], "measure", order[: place - len(slots)].count(name))
        for place, name in enumerate(order, len(slots))
    ]


def run_preflight(arms: Sequence[PlannedArm], running: RunningBlock) -> PreflightRecord:
    """Ask all arms the same before the load, where they speak HTTP."""
    point, up = running.point, running.up
    answers = {
        arm.name: point.testbed.clients.ask(
            arm.name,
            up[arm.name].url,
            Questions(arm.certified, arm.load, point.experiment.ignore),
        )
        for arm in arms
        if arm.stack.protocol == "http"
    }
    return PreflightRecord(
        block=running.number,
        answers=with_differences(answers),
        settings={arm.name: dict(up[arm.name].settings) for arm in arms},
        ran_before=[arm.name for arm in arms if arm.stack.runs_already],
    )


def _measure(
    running: RunningBlock, slots: Sequence[PlannedSlot], times: SlotSettings, rng: Random
) -> None:
    rest_s = times.rest_s
    for slot in slots:
        if rest_s and not running.waits_for_rest(rest_s):
            rest_s = 0.0  # what they do then isn't left of their load
        order = _slot_order(running, slot, times, rng)
        running.measure(slot.position, slot.arm, slot.phase, order)
        time.sleep(slot.pause_s)


def _slot_order(
    running: RunningBlock, slot: PlannedSlot, times: SlotSettings, rng: Random
) -> LoadOrder:
    point, arm = running.point, slot.arm
    name = f"block {running.number} slot {slot.position}"
    if slot.phase == "warmup":
        return running.order(arm, name, slot.warmup_s)
    if arm.load.requests is not None:
        longest_s = point.experiment.measure.slot_s or LONGEST_COUNT_S
        order = running.order(arm, name, longest_s, turn=slot.turn)
        return replace(order, count=arm.load.requests)
    lead_in_s = _lead_in_s(arm, times) + rng.uniform(0.0, times.phase_s.get(arm.name, 0.0))
    return replayed(running.order(arm, name, times.window_s, lead_in_s=lead_in_s, turn=slot.turn))


def replayed(order: LoadOrder) -> LoadOrder:
    """Give an order with a stretch of the log that its load replays, if it does.

    Its seed draws it; arms that replay the same log have the same stretch in their windows.
    """
    load = order.load
    if load.arrivals != "replay" or load.replay is None or load.rate_per_s is None:
        return order
    begin, lead_in_s = Random(order.seed).random(), order.lead_in_s
    stretch = unpacked(load.replay).stretch(
        begin, order.duration_s, load.rate_per_s, lead_in_s=lead_in_s
    )
    return replace(order, replay=stretch)


def _lead_in_s(arm: PlannedArm, times: SlotSettings) -> float:
    """Give the lead-in of an arm's slots; those that a number of requests ends have none."""
    return 0.0 if arm.load.requests is not None else times.lead_in_s[arm.name]
