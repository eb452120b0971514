"""What variants cost besides slots that count: at rest, with open connections, in instructions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

from webdyno.core.experiment import OWN_GENERATOR
from webdyno.core.load import Load
from webdyno.core.looks import SlotSettings
from webdyno.core.records import InstructionsRecord, RestRecord
from webdyno.evidence.cost import cost_rate_rps
from webdyno.measure.backend import CourseTracing, SlotUsage
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.variant import RunningRound

COUNTED_ROUNDS = 3
"""In so many first ones instructions are counted: from one to the next these differ by far less
than time does."""
MOST_SETTLING_S = 1.0
"""Longest wait after a load until the work that it left is done."""
HELD = 256
"""Connections to hold: servers hold as many by default, though some hold fewer."""
NOBODY_RPS = 0.001
"""The slowest arrival rate: evenly spaced, the first request is due after eight minutes."""
ANSWER_WITHIN_S = 1.0
"""A connection is held where its request is answered by then."""
OPENING_S = 0.5
"""Time until connections are open and the one request on each is answered."""
READINGS = 10
"""Readings of memory; those of the second half count."""


def count_instructions(
    running: RunningRound, variants: Sequence[PlannedVariant], times: SlotSettings
) -> None:
    """Count what each variant that is here executes, where an experiment asks for costs.

    That has a slot of its own, since counting takes CPU time. Raises StackDied.
    """
    for variant in variants:
        slot_s = times.ramp_up_s[variant.name] + times.window_s
        is_here = not running.up[variant.name].is_elsewhere and not variant.stack.runs_already
        if is_here and _is_due(running, variant.name, slot_s):
            with running.deaths_on_record(variant):
                running.point.keep(_instructions_of(running, variant, times))


def _is_due(running: RunningRound, variant: str, slot_s: float) -> bool:
    point, is_traced = running.point, running.tracing("measure") is not None
    if running.number > COUNTED_ROUNDS or is_traced or point.left_s < slot_s:
        return False
    if cost_rate_rps(point.experiment, variant) is None:
        return False
    known = (record for record in point.data.records if isinstance(record, InstructionsRecord))
    return not any(record.fault for record in known)


def _instructions_of(
    running: RunningRound, variant: PlannedVariant, times: SlotSettings
) -> InstructionsRecord:
    testbed, started_at = running.point.testbed, datetime.now(UTC)
    tried = testbed.rest(variant.name, 0.0, "instructions").instructions
    known = InstructionsRecord(round=running.number, variant=variant.name, started_at=started_at)
    if tried is None or tried.fault:
        return known.replace(fault=tried.fault if tried else "")
    name = f"round {running.number}, instructions of {variant.name}"
    order = running.order(variant, name, times.window_s, ramp_up_s=times.ramp_up_s[variant.name])
    slot = testbed.slot(variant.name, order, "instructions")
    counted = slot.used.instructions
    return known.replace(
        instructions=counted.instructions if counted else None,
        fault=counted.fault if counted else "",
        responses=slot.load.all_of_it.responses,
    )


def look_at_rest(running: RunningRound, variants: Sequence[PlannedVariant], rest_s: float) -> None:
    """Leave each variant alone, then have it hold connections, and put on record what it used.

    Of variants on other machines nothing can be read. Raises StackDied.
    """
    for variant in variants:
        if running.up[variant.name].is_elsewhere:
            continue
        with running.deaths_on_record(variant):
            look = _look_at_rest(running, variant, rest_s)
            running.point.keep(_with_held(look, running, variant, rest_s))


def _look_at_rest(running: RunningRound, variant: PlannedVariant, rest_s: float) -> RestRecord:
    running.waits_for_rest(MOST_SETTLING_S)
    started_at, tracing = datetime.now(UTC), CourseTracing(rest_s / READINGS)
    used = running.point.testbed.rest(variant.name, rest_s, tracing)
    return RestRecord(
        round=running.number,
        variant=variant.name,
        started_at=started_at,
        rested_s=used.readings.host.took_s,
        # Interrupts of a CPU that nobody uses are the clock's.
        cpu_s=used.servers.cpu_user_s + used.servers.cpu_sys_s,
        wake_ups=sum(service.switches_voluntary for service in used.readings.services.values()),
        memory_bytes=_memory_bytes(used),
    )


def _with_held(
    look: RestRecord, running: RunningRound, variant: PlannedVariant, rest_s: float
) -> RestRecord:
    """Add what connections take, where the load generator can hold some next to a load."""
    load = variant.load
    is_plain = load.protocol == "http" and variant.users is None and not load.broadcast
    if running.point.experiment.generator != OWN_GENERATOR or not is_plain:
        return look
    resting = Load(
        paths=load.paths,
        headers=load.headers,
        timeout_s=min(load.timeout_s, ANSWER_WITHIN_S),
        loop="open",
        rate_per_s=NOBODY_RPS,
        arrivals="constant",
        connections=1,
        idle_connections=HELD,
    )
    name = f"round {running.number}, {variant.name} with open connections"
    order = running.order(replace(variant, load=resting), name, rest_s, ramp_up_s=OPENING_S)
    slot = running.point.testbed.slot(variant.name, order, CourseTracing(rest_s / READINGS))
    held = slot.load.idle_connections
    return look.replace(
        held=held.held if held else 0, memory_with_held_bytes=_memory_bytes(slot.used)
    )


def _memory_bytes(used: SlotUsage) -> int | None:
    later = used.course[len(used.course) // 2 :]
    known = [sample.memory_bytes for sample in later if sample.memory_bytes is not None]
    return round(median(known)) if known else None
