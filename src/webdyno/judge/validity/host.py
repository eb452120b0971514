"""Whether the host was left alone: what others do on its CPUs is measured as if servers did it."""

from collections.abc import Sequence

from webdyno.judge.validity.rule import (
    DISTURBANCES_TOLERATED,
    TIMING,
    SlotRule,
    readings_of,
    with_readings,
)
from webdyno.model.format import percent
from webdyno.model.readings import Readings
from webdyno.model.records import SlotRecord

FOREIGN_LIMIT = 0.1
"""Share of the servers' CPU time that other programs may take."""

TICKS_S = 0.02
"""By how much the host's CPU time, counted in ticks of 10 ms, may be off beside that."""

STEAL_LIMIT = 0.02
"""Share of the CPU time of servers and client that the hypervisor may give to others."""

PRESSURE_LIMIT = 0.05
"""Share of the slot in which a task may have waited for memory."""


def foreign_share(slot: SlotRecord) -> float:
    """Give the share of the servers' CPUs that was surely used by neither servers nor client.

    Interrupts' time is the servers' own, whether or not the kernel keeps it apart from theirs.
    """
    if slot.readings is None or not (total_s := slot.readings.host.servers.total_s):
        return 0.0
    return (slot.readings.host.servers.busy_s - slot.servers.cpu_s - TICKS_S) / total_s


def _steal_share(readings: Readings) -> float:
    sets = (readings.host.servers, readings.host.client)
    total_s = sum(cpus.total_s for cpus in sets)
    return sum(cpus.steal_s for cpus in sets) / total_s if total_s else 0.0


def _memory_waiting(readings: Readings) -> float:
    pressure = readings.host.pressure
    took_s = readings.host.took_s
    return pressure.memory_s / took_s if pressure and took_s else 0.0


def _foreign(slots: Sequence[SlotRecord]) -> str:
    return (
        f"other programs took up to {percent(max(map(foreign_share, slots)))} of the servers' "
        f"CPUs (limit {percent(FOREIGN_LIMIT)})"
    )


def _crowded(slot: SlotRecord) -> bool:
    """Whether others took too much; what a client on the servers' CPUs takes isn't foreign."""
    shared = slot.readings is not None and slot.readings.shared_cpus
    return not shared and foreign_share(slot) > FOREIGN_LIMIT


OTHER_WORK = SlotRule(
    name="other-work",
    broken=_crowded,
    what=_foreign,
    remedy="Stop other programs on this machine (`top` shows them), or keep them off the servers' "
    "CPUs.",
    spoils=TIMING,
    tolerated=DISTURBANCES_TOLERATED,
)

STEAL = SlotRule(
    name="steal",
    broken=with_readings(lambda readings: _steal_share(readings) > STEAL_LIMIT),
    what=lambda slots: (
        f"the hypervisor gave up to {percent(max(map(_steal_share, readings_of(slots))))} of the "
        f"CPU time to other machines (limit {percent(STEAL_LIMIT)})"
    ),
    remedy="Run at a quieter time or on a machine of your own.",
    spoils=TIMING,
    tolerated=DISTURBANCES_TOLERATED,
)

MEMORY_PRESSURE = SlotRule(
    name="memory-pressure",
    broken=with_readings(lambda readings: _memory_waiting(readings) > PRESSURE_LIMIT),
    what=lambda slots: (
        "programs waited for memory during up to "
        f"{percent(max(map(_memory_waiting, readings_of(slots))))} of a slot"
    ),
    remedy="Free memory on this machine, or give the servers fewer workers.",
    tolerated=DISTURBANCES_TOLERATED,
)

RULES = (OTHER_WORK, STEAL, MEMORY_PRESSURE)
