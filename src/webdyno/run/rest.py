"""What variants use while nobody asks them anything: at rest, then with open connections."""

from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.load import Load
from webdyno.model.records import RestRecord
from webdyno.run.backend import CourseTracing, SlotUsage
from webdyno.run.planned import PlannedVariant
from webdyno.run.variant import RunningRound
from webdyno.stack.service import StackDied

MOST_SETTLING_S = 1.0
"""After the load, until work that was left over is done; what goes on then is no rest of it."""
HELD = 256
"""Connections: as many as servers hold by default; one may hold fewer."""
NOBODY_RPS = 0.001
"""The slowest arrival rate: evenly spaced, the first request is due after eight minutes."""
ANSWER_WITHIN_S = 1.0
"""What isn't answered by then is no connection that is held."""
OPENING_S = 0.5
"""Until connections are open and the one request on each is answered."""
READINGS = 10
"""Of memory; those of the second half count."""


def look_at_rest(running: RunningRound, variant: PlannedVariant, rest_s: float) -> None:
    """Leave a variant alone, then have it hold connections, and put on record what it used.

    Where its servers died meanwhile, that is put on record, and StackDied raised.
    """
    try:
        running.point.keep(_seen_at_rest(running, variant, rest_s))
    except StackDied as death:
        running.point.keep_incident(running.number, variant.name, death)
        raise


def _seen_at_rest(running: RunningRound, variant: PlannedVariant, rest_s: float) -> RestRecord:
    running.waits_for_rest(MOST_SETTLING_S)
    started_at, tracing = datetime.now(UTC), CourseTracing(rest_s / READINGS)
    used = running.point.testbed.rest(variant.name, rest_s, tracing)
    look = RestRecord(
        round=running.number,
        variant=variant.name,
        started_at=started_at,
        rested_s=used.readings.host.took_s,
        # Interrupts of a CPU that nobody uses are the clock's.
        cpu_s=used.servers.cpu_user_s + used.servers.cpu_sys_s,
        wake_ups=sum(service.switches_voluntary for service in used.readings.services.values()),
        memory_bytes=_memory_bytes(used),
    )
    return _with_held(look, running, variant, rest_s)


def _with_held(
    look: RestRecord, running: RunningRound, variant: PlannedVariant, rest_s: float
) -> RestRecord:
    """Add what connections take, where the load generator can hold some beside a load."""
    is_plain = variant.load.protocol == "http" and variant.users is None
    if running.point.experiment.generator != OWN_GENERATOR or not is_plain:
        return look
    name = f"round {running.number}, {variant.name} with open connections"
    order = running.order(_holding(variant), name, rest_s, ramp_up_s=OPENING_S)
    slot = running.point.testbed.slot(variant.name, order, CourseTracing(rest_s / READINGS))
    held = slot.load.idle_connections
    return look.replace(
        held=held.held if held else 0, memory_with_held_bytes=_memory_bytes(slot.used)
    )


def _holding(variant: PlannedVariant) -> PlannedVariant:
    """Give it with open connections and no other load; what is asked for stays."""
    load = variant.load
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
    return replace(variant, load=resting)


def _memory_bytes(used: SlotUsage) -> int | None:
    later = used.course[len(used.course) // 2 :]
    known = [sample.memory_bytes for sample in later if sample.memory_bytes is not None]
    return round(median(known)) if known else None
