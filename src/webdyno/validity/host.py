"""What others on the machine took from servers and client, and whether the network carried it all.

Others' work is measured as if servers did it.
"""

from collections.abc import Iterable, Sequence

from webdyno.core.format import count, number, percent
from webdyno.core.judgement import Comparison, ValidityWarning, Verdict
from webdyno.core.metrics import METRICS, Kind, metrics_of_kind
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity.client import reaches_ceiling
from webdyno.validity.rule import (
    INTERFERENCE_TOLERATED,
    TIMING,
    RunRule,
    SlotRule,
    note,
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

PORTS_LIMIT = 0.9
"""Share of the local ports that may wait in TIME_WAIT."""

LINK_LIMIT = 0.9
"""Share of a link's bandwidth from which on it may be the link that is measured."""

MOST_SLOTS = 0.5
"""Share of a variant's slots with a full link from which on the link was the variant's limit."""

EXECUTED: tuple[Kind, ...] = ("instructions",)
UNCOUNTED = SlotRule(
    name="instructions-uncounted",
    broken=lambda slot: bool(slot.uncounted),
    what=lambda slots: f"its instructions weren't counted: {slots[0].uncounted}",
    fix="Stop other programs that count, such as perf; kernel.nmi_watchdog=0 frees a counter.",
    invalidates=EXECUTED,
    tolerated=INTERFERENCE_TOLERATED,
)


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
    """Return the same as a share of what the servers' CPUs could do."""
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


def _dropped_connections(readings: Readings) -> int:
    """Count connections that the listeners dropped, or else their own network namespace."""
    network = readings.network
    if network.dropped is not None:
        # A listener counts some drops twice; the namespace counts each of all listeners once.
        return min(network.dropped, max(network.listen_overflows, network.listen_drops))
    return max(network.listen_overflows, network.listen_drops) if network.own_namespace else 0


LISTEN_OVERFLOW = SlotRule(
    name="listen-overflow",
    broken=with_readings(lambda readings: _dropped_connections(readings) > 0),
    what=lambda slots: (
        f"{count(sum(map(_dropped_connections, readings_of(slots))), 'connection')} found "
        "the listen queue full, and waited a second or more for their next attempt"
    ),
    fix="Raise the server's listen backlog and the kernel's limit (sysctl net.core.somaxconn), or "
    "use fewer connections.",
    invalidates=TIMING,
)


def _syns_again(readings: Readings) -> int:
    """Count SYNs sent again in a network namespace of its own: elsewhere others send them, too."""
    return readings.network.syn_retransmits if readings.network.own_namespace else 0


SYN_RETRANSMITS = SlotRule(
    name="syn-retransmits",
    broken=with_readings(lambda readings: _syns_again(readings) > 0),
    what=lambda slots: (
        f"{number(sum(map(_syns_again, readings_of(slots))))} "
        "connection attempts (SYN) had to be sent again, after a second or more"
    ),
    fix="Raise the listen backlog and net.core.somaxconn, or use fewer new connections.",
    invalidates=TIMING,
)


def _out_of_ports(slot: SlotRecord) -> bool:
    """Whether the client lacked local ports: it says so, or nearly all of them wait."""
    if slot.load.all_of_it.connections.without_port:
        return True
    if slot.readings is None or not slot.load.all_of_it.failures.connect:
        return False
    network = slot.readings.network
    return network.time_wait > PORTS_LIMIT * network.ephemeral_ports


def _ports(slots: Sequence[SlotRecord]) -> str:
    waiting = max((readings.network.time_wait for readings in readings_of(slots)), default=0)
    failed = sum(slot.load.all_of_it.failures.connect or 0 for slot in slots)
    held = f", while connections just closed held {number(waiting)} (TIME_WAIT)" if waiting else ""
    return (
        f"{count(failed, 'connection attempt')} failed because the client ran out of local "
        f"ports{held}"
    )


PORTS_USED_UP = SlotRule(
    name="ports-used-up",
    broken=_out_of_ports,
    what=_ports,
    fix="It is the client's limit, not the server's: use keep-alive (load.keepalive), fewer new "
    "connections, or widen net.ipv4.ip_local_port_range; `webdyno load` has --source, too.",
)


def _link_limited(data: PointData) -> Iterable[ValidityWarning]:
    """Note each variant that filled the link in at least half of its slots.

    A limited link is part of the experiment, so a full one invalidates nothing: it explains why
    variants are equivalent over it, or why a faster one isn't ahead by more.
    """
    for variant in data.experiment.variants:
        mine = data.of_variant(variant)
        full = [slot for slot in mine if _fills_link(slot)]
        if link_limited(mine):
            yield note(
                LINK_LIMITED.name,
                variant,
                f"in {len(full)} of {count(len(mine), 'slot')} {_link_words(full)}: the link was "
                "measured, not the server, which may be faster than it looks",
                "Use a faster link (--link) or smaller bodies to compare the servers themselves.",
                metrics_of_kind(TIMING, mine),
            )


def link_limited(slots: Sequence[SlotRecord]) -> bool:
    """Whether a variant filled the link in at least half of its slots."""
    full = sum(map(_fills_link, slots))
    return full > 0 and full >= MOST_SLOTS * len(slots)


LINK_LIMITED = RunRule("link-limited", _link_limited)


def both_filled_link(comparison: Comparison, warnings: Iterable[ValidityWarning]) -> str | None:
    """State that the link made two variants equivalent, if it did."""
    bound = {warning.variant for warning in warnings if warning.rule == LINK_LIMITED.name}
    if (
        comparison.verdict is Verdict.EQUIVALENT
        and METRICS[comparison.metric].kind in TIMING
        and {comparison.a, comparison.b} <= bound
    ):
        return f"both filled the link, which is the limit ({LINK_LIMITED.name})"
    return None


def _link_words(full: Sequence[SlotRecord]) -> str:
    shares = sorted(link_share(readings) for readings in readings_of(full))
    if not shares[-1]:
        return "the throughput was what the link allows at most (webdyno doctor --calibrate)"
    return f"the link carried {percent(shares[len(shares) // 2])} of what it can"


def _fills_link(slot: SlotRecord) -> bool:
    if slot.readings is None:
        return False
    return link_share(slot.readings) > LINK_LIMIT or reaches_ceiling(slot, "link")


def link_share(readings: Readings) -> float:
    """Return what the link carried as a share of what it can; 0 where it has no limit."""
    network = readings.network
    if not network.link_bytes_per_s or not readings.host.took_s:
        return 0.0
    busier_way = max(network.sent_bytes, network.received_bytes)
    return busier_way / readings.host.took_s / network.link_bytes_per_s


RULES = (
    LISTEN_OVERFLOW,
    SYN_RETRANSMITS,
    PORTS_USED_UP,
    OTHER_WORK,
    STEAL,
    MEMORY_PRESSURE,
    UNCOUNTED,
)
