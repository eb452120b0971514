"""Whether the network carried what was asked of it."""

from collections.abc import Sequence

from webdyno.judge.validity.rule import TIMING_METRICS, SlotRule, readings_of, with_readings
from webdyno.judge.words import number, plural
from webdyno.model.readings import Readings
from webdyno.model.records import SlotRecord

PORTS_LIMIT = 0.9
"""Share of the local ports that may wait in TIME_WAIT."""


def _overflows(readings: Readings) -> int:
    return max(readings.network.listen_overflows, readings.network.listen_drops)


def _out_of_ports(slot: SlotRecord) -> bool:
    network = slot.readings.network if slot.readings else None
    return (
        network is not None
        and bool(slot.load.failures.connect)
        and network.time_wait > PORTS_LIMIT * network.ephemeral_ports
    )


def _ports(slots: Sequence[SlotRecord]) -> str:
    waiting = max(readings.network.time_wait for readings in readings_of(slots))
    failed = sum(slot.load.failures.connect or 0 for slot in slots)
    return (
        f"{plural(failed, 'connection attempt')} failed while {number(waiting)} local ports were "
        "still held by connections just closed (TIME_WAIT)"
    )


LISTEN_OVERFLOW = SlotRule(
    name="listen-overflow",
    broken=with_readings(lambda readings: _overflows(readings) > 0),
    what=lambda slots: (
        f"{plural(sum(map(_overflows, readings_of(slots))), 'connection')} found "
        "the listen queue full, and waited a second or more for their next attempt"
    ),
    remedy="Raise the server's listen backlog and the kernel's limit (sysctl net.core.somaxconn), "
    "give it more workers, or use fewer connections.",
    spoils=TIMING_METRICS,
)

SYN_RETRANSMITS = SlotRule(
    name="syn-retransmits",
    broken=with_readings(lambda readings: readings.network.syn_retransmits > 0),
    what=lambda slots: (
        f"{number(sum(r.network.syn_retransmits for r in readings_of(slots)))} "
        "connection attempts (SYN) had to be sent again, after a second or more"
    ),
    remedy="Raise the listen backlog and net.core.somaxconn, or use fewer new connections; on a "
    "link with loss that is to be expected, so compare over keep-alive there.",
    spoils=TIMING_METRICS,
)

PORTS_USED_UP = SlotRule(
    name="ports-used-up",
    broken=_out_of_ports,
    what=_ports,
    remedy="Use keep-alive or a lower rate, widen net.ipv4.ip_local_port_range, or allow "
    "net.ipv4.tcp_tw_reuse.",
)

RULES = (LISTEN_OVERFLOW, SYN_RETRANSMITS, PORTS_USED_UP)
