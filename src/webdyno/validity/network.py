"""Whether the network carried what was asked of it, and was it that was measured."""

from collections.abc import Iterable, Sequence

from webdyno.core.format import count, number, percent
from webdyno.core.judgement import Comparison, ValidityWarning, Verdict
from webdyno.core.metrics import METRICS, metrics_of_kind
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity.client import reaches_ceiling
from webdyno.validity.rule import TIMING, RunRule, SlotRule, note, readings_of, with_readings

PORTS_LIMIT = 0.9
"""Share of the local ports that may wait in TIME_WAIT."""

LINK_LIMIT = 0.9
"""Share of a link's bandwidth from which on it may be the link that is measured."""

MOST_SLOTS = 0.5
"""Share of a variant's slots with a full link from which on the link was the variant's limit."""


def _dropped(readings: Readings) -> int:
    """Count connections that the variant's listeners dropped.

    Where the kernel doesn't say that of each listener, the whole network namespace's count serves,
    provided that nobody else is in it.
    """
    network = readings.network
    if network.dropped is not None:
        # A listener counts some drops twice; the namespace counts each of all listeners once.
        return min(network.dropped, max(network.listen_overflows, network.listen_drops))
    return max(network.listen_overflows, network.listen_drops) if network.own_namespace else 0


LISTEN_OVERFLOW = SlotRule(
    name="listen-overflow",
    broken=with_readings(lambda readings: _dropped(readings) > 0),
    what=lambda slots: (
        f"{count(sum(map(_dropped, readings_of(slots))), 'connection')} found "
        "the listen queue full, and waited a second or more for their next attempt"
    ),
    fix="Raise the server's listen backlog and the kernel's limit (sysctl net.core.somaxconn), or "
    "use fewer connections.",
    invalidates=TIMING,
)


def _syns_again(readings: Readings) -> int:
    """Count SYNs sent again, where they must be ours.

    On the loopback interface none gets lost but by a listener that drops it, which is counted by
    itself; those of other programs' connections can't be distinguished from ours.
    """
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
    """Return whether the client lacked local ports: it says so, or nearly all of them wait."""
    if slot.load.all_of_it.connections.without_port:
        return True
    network = slot.readings.network if slot.readings else None
    return (
        network is not None
        and bool(slot.load.all_of_it.failures.connect)
        and network.time_wait > PORTS_LIMIT * network.ephemeral_ports
    )


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

SLOT_RULES = (LISTEN_OVERFLOW, SYN_RETRANSMITS, PORTS_USED_UP)


def _link_limited(data: PointData) -> Iterable[ValidityWarning]:
    """Note each variant that filled the link in at least half of its slots.

    A link with a limit is part of the experiment, so a full one invalidates nothing: it is the
    reason why variants are equivalent over it, or why a faster one isn't ahead by more.
    """
    for variant in data.experiment.variants:
        mine = data.of_variant(variant)
        full = [slot for slot in mine if _fills_link(slot)]
        if link_limited(mine):
            yield note(
                LINK_LIMITED.name,
                variant,
                f"in {len(full)} of {count(len(mine), 'slot')} {_carried(full)}: the link was "
                "measured, not the server, which may be faster than it looks",
                "Use a faster link (--link) or smaller bodies to compare the servers themselves.",
                metrics_of_kind(TIMING, mine),
            )


def link_limited(slots: Sequence[SlotRecord]) -> bool:
    """Return whether a variant filled the link in at least half of its slots."""
    full = sum(map(_fills_link, slots))
    return full > 0 and full >= MOST_SLOTS * len(slots)


LINK_LIMITED = RunRule("link-limited", _link_limited)


def both_filled_link(comparison: Comparison, warnings: Iterable[ValidityWarning]) -> str | None:
    """Say that the link made two variants equivalent, if it did."""
    bound = {warning.variant for warning in warnings if warning.rule == LINK_LIMITED.name}
    if (
        comparison.verdict is Verdict.EQUIVALENT
        and METRICS[comparison.metric].kind in TIMING
        and {comparison.a, comparison.b} <= bound
    ):
        return f"both filled the link, which is the limit ({LINK_LIMITED.name})"
    return None


def _carried(full: Sequence[SlotRecord]) -> str:
    shares = sorted(link_share(readings) for readings in readings_of(full))
    if not shares[-1]:
        return "the throughput was what the link allows at most (webdyno doctor --calibrate)"
    return f"the link carried {percent(shares[len(shares) // 2])} of what it can"


def _fills_link(slot: SlotRecord) -> bool:
    if slot.readings is None:
        return False
    return link_share(slot.readings) > LINK_LIMIT or reaches_ceiling(slot, "link")


def link_share(readings: Readings) -> float:
    """Give what the link carried as a share of what it can; 0 where it has no limit."""
    network = readings.network
    if not network.link_bytes_per_s or not readings.host.took_s:
        return 0.0
    busier_way = max(network.sent_bytes, network.received_bytes)
    return busier_way / readings.host.took_s / network.link_bytes_per_s
