"""What others do to the machine while servers are loaded: `other-work`, `steal`, `memory-pressure`.

Work of other programs is measured as if servers did it, and what a hypervisor gives to other
machines (`steal`) as if servers had been slow. Others may hold the CPUs' counters as well
(`instructions-uncounted`). How far it moves metrics: `CAUSES` of `comparison/bias.py`.
"""

from webdyno.core.format import percent
from webdyno.core.metrics import Kind
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.validity.rule import (
    INTERFERENCE_TOLERATED,
    TIMING,
    SlotRule,
    readings_of,
    with_readings,
)

FOREIGN_LIMIT = 0.1
"""Share of the servers' CPU time that other programs may take."""
TICKS_S = 0.02
"""By how much the host's CPU time, counted in ticks of 10 ms, may be off next to that."""
STEAL_LIMIT = 0.02
"""Share of the CPU time of servers and client that the hypervisor may give to others."""
PRESSURE_LIMIT = 0.05
"""Share of the slot in which a task may have waited for memory."""


def foreign_s(slot: SlotRecord) -> float:
    """Return the CPU time on the servers' CPUs that was surely used by no server nor the client.

    Interrupts' time is the servers' own, whether or not the kernel keeps it apart from theirs; what
    the other variants' servers used has its own rule (`left-over-work`).
    """
    if slot.readings is None:
        return 0.0
    ours_s = slot.servers.cpu_s + sum(slot.readings.other_variants_cpu_s.values())
    if slot.readings.shared_cpus:
        ours_s += slot.load.client.cpu_user_s + slot.load.client.cpu_sys_s
    return max(slot.readings.host.servers.busy_s - ours_s - TICKS_S, 0.0)


def foreign_share(slot: SlotRecord) -> float:
    """Return the CPU time that others surely used, as a share of the servers' CPUs."""
    total_s = slot.readings.host.servers.total_s if slot.readings else 0.0
    return foreign_s(slot) / total_s if total_s else 0.0


def stolen_share(slot: SlotRecord) -> float:
    """Return the share of the servers' CPU time that the hypervisor gave to others."""
    cpus = slot.readings.host.servers if slot.readings else None
    return cpus.steal_s / cpus.total_s if cpus and cpus.total_s else 0.0


def _steal_share(readings: Readings) -> float:
    sets = (readings.host.servers, readings.host.client)
    total_s = sum(cpus.total_s for cpus in sets)
    return sum(cpus.steal_s for cpus in sets) / total_s if total_s else 0.0


def memory_waiting(slot: SlotRecord) -> float:
    """Return the share of the slot in which a task waited for memory."""
    if slot.readings is None:
        return 0.0
    pressure, took_s = slot.readings.host.pressure, slot.readings.host.took_s
    return min(pressure.memory_s / took_s, 1.0) if pressure and took_s else 0.0


OTHER_WORK = SlotRule(
    name="other-work",
    broken=lambda slot: foreign_share(slot) > FOREIGN_LIMIT,
    what=lambda slots: (
        f"other programs took up to {percent(max(map(foreign_share, slots)))} of the servers' "
        f"CPUs (limit {percent(FOREIGN_LIMIT)})"
    ),
    fix="Stop other programs on this machine (`top` shows them); declare a database that your "
    "application uses as a service of the variant.",
    invalidates=TIMING,
    tolerated=INTERFERENCE_TOLERATED,
    has_bias_bound=True,
)

STEAL = SlotRule(
    name="steal",
    broken=with_readings(lambda readings: _steal_share(readings) > STEAL_LIMIT),
    what=lambda slots: (
        f"the hypervisor gave up to {percent(max(map(_steal_share, readings_of(slots))))} of the "
        f"CPU time to other machines (limit {percent(STEAL_LIMIT)})"
    ),
    fix="Run at a quieter time or on a machine of your own.",
    invalidates=TIMING,
    tolerated=INTERFERENCE_TOLERATED,
    has_bias_bound=True,
)

MEMORY_PRESSURE = SlotRule(
    name="memory-pressure",
    broken=lambda slot: memory_waiting(slot) > PRESSURE_LIMIT,
    what=lambda slots: (
        "programs waited for memory during up to "
        f"{percent(max(map(memory_waiting, slots)))} of a slot"
    ),
    fix="Free memory on this machine, or give the servers fewer workers.",
    tolerated=INTERFERENCE_TOLERATED,
    has_bias_bound=True,
)

EXECUTED: tuple[Kind, ...] = ("instructions",)
UNCOUNTED = SlotRule(
    name="instructions-uncounted",
    broken=lambda slot: bool(slot.uncounted),
    what=lambda slots: f"its instructions weren't counted: {slots[0].uncounted}",
    fix="Stop other programs that count, such as perf; kernel.nmi_watchdog=0 frees a counter.",
    invalidates=EXECUTED,
    tolerated=INTERFERENCE_TOLERATED,
)

RULES = (OTHER_WORK, STEAL, MEMORY_PRESSURE, UNCOUNTED)
