"""Whether connections were kept as asked, and the network carried what was asked of it.

Opening connections is a good part of a small request's cost: `keep-alive`, `unwanted-keep-alive`,
`idle-connections`, `retried`. Of the network: `listen-overflow`, `syn-retransmits`,
`ports-used-up`, `link-limited`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from webdyno.core.format import count, number, percent
from webdyno.core.judgement import Comparison, ExcludedSlot, ValidityWarning, Verdict
from webdyno.core.metrics import METRICS, metrics_of_kind, responses
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import welch
from webdyno.validity.client import reaches_ceiling
from webdyno.validity.rule import TIMING, RunRule, SlotRule, note, readings_of, with_readings

CLOSED_LIMIT = 0.02
"""Share of responses after which the server may close although the connection was to be kept. Usual
settings stay below it: nginx closes after 1000 requests, Apache after 100, and Apache's event MPM
some more when all its threads are busy."""
REPORTED_LIMIT = 0.005
"""Share of responses from which on it is reported: then the cost of opening connections shows."""
ALIKE = 0.8
"""Variants close connections alike where the smallest share of responses is this much of the
largest."""
NEARLY_ALIKE, FEWEST_SLOTS = 1 / 3, 4
"""Below that, or with fewer slots of each, they aren't alike, however much shares of slots vary."""
SAME = (
    "Ask all variants for the same: --set load.keepalive=never (a connection for each request) or "
    "--set load.keepalive=50."
)
ALL_CLOSED = 0.9
"""Share of responses from which on a server keeps no connection; some are closed after the slot."""
HELD_LIMIT = 0.99
"""Share of the idle connections that must be open: one may just be opened again at the end."""
PORTS_LIMIT = 0.9
"""Share of the local ports that may wait in TIME_WAIT."""
LINK_LIMIT = 0.9
"""Share of a link's bandwidth from which on it may be the link that is measured."""
MOST_SLOTS = 0.5
"""Share of a variant's slots with a full link from which on the link was the variant's limit."""


def _closed_share(slots: Sequence[SlotRecord]) -> float:
    kept = [slot for slot in slots if slot.load.keepalive.requested != "never"]
    closed = sum(slot.load.all_of_it.server_closed or 0 for slot in kept)
    return closed / max(sum(responses(slot) for slot in kept), 1)


def _closed_words(slots: Sequence[SlotRecord]) -> str:
    closed = sum(slot.load.all_of_it.server_closed or 0 for slot in slots)
    return (
        f"the server closed {count(closed, 'connection')} that should have been kept, "
        f"{_one_in(_closed_share(slots))}"
    )


def _one_in(share: float) -> str:
    return f"one in {number(1 / share)} responses"


def _retry_notes(data: PointData) -> Iterator[ValidityWarning]:
    for variant in data.experiment.variants:
        slots = data.of_variant(variant)
        retried = sum(slot.load.all_of_it.retried or 0 for slot in slots)
        if retried:
            yield note(
                "retried",
                variant,
                f"{count(retried, 'request')} at {number(sum(map(responses, slots)))} responses "
                "met a kept connection that the server had just closed, and were sent once more",
                "Browsers do so, too, and its time is in the figures. To have none, open a "
                "connection for each request: --set load.keepalive=never.",
            )


def _reused_requests(slot: SlotRecord) -> int:
    return slot.load.all_of_it.connections.reused_requests or 0


def _fewest_held(slots: Sequence[SlotRecord]) -> str:
    counts = [idle for slot in slots if (idle := slot.load.idle_connections)]
    fewest = min(counts, key=lambda idle: idle.held)
    return (
        f"only {number(fewest.held)} of {number(fewest.requested)} idle connections were kept open"
    )


@dataclass(frozen=True)
class _KeptAlike(SlotRule):
    """Servers that close connections equally often are alike: what it costs is in all figures.

    Whether a variant closes too many is known by all its slots: connections that were opened
    together reach a server's limit together, in one slot and not in the others.
    """

    def excluded_slots(self, slots: Sequence[SlotRecord]) -> list[ExcludedSlot]:
        """List the slots that break the rule, unless the variants are alike."""
        closing = set() if _are_alike(slots) else _closing(slots)
        return super().excluded_slots([slot for slot in slots if slot.variant in closing])

    def warnings(self, data: PointData) -> list[ValidityWarning]:
        """Report variants that close connections; notes where they are alike, or close few."""
        if _are_alike(data.slots):
            return [self._alike(list(_by_variant(data.slots).values()))]
        closing = _closing(data.slots)
        notes = [
            note(self.name, variant, f"{_closed_words(slots)}; its figures include that", SAME)
            for variant, slots in _by_variant(data.slots).items()
            if variant not in closing and _closed_share(slots) > REPORTED_LIMIT
        ]
        warnings = [warning for warning in super().warnings(data) if warning.variant in closing]
        return [*warnings, *notes]

    def _alike(self, variants: Sequence[Sequence[SlotRecord]]) -> ValidityWarning:
        shares = sorted({_one_in(_closed_share(slots)) for slots in variants})
        if all(_closed_share(slots) >= ALL_CLOSED for slots in variants):
            what = "no variant keeps connections: each request opened its own"
            fix = "Say so in the experiment: --set load.keepalive=never."
        else:
            what = f"the variants close kept connections alike, after {' or '.join(shares)}"
            fix = SAME
        return ValidityWarning(
            rule=self.name,
            severity="note",
            variant=None,
            what=f"{what}, and that is in all figures",
            fix=fix,
        )


def _by_variant(slots: Sequence[SlotRecord]) -> dict[str, list[SlotRecord]]:
    by_variant: dict[str, list[SlotRecord]] = {}
    for slot in slots:
        by_variant.setdefault(slot.variant, []).append(slot)
    return by_variant


def _closing(slots: Sequence[SlotRecord]) -> set[str]:
    return {
        variant
        for variant, mine in _by_variant(slots).items()
        if _closed_share(mine) > CLOSED_LIMIT
    }


def _are_alike(slots: Sequence[SlotRecord]) -> bool:
    """Whether all variants close kept connections, each about as often as the others.

    That may vary from slot to slot, as with servers that close what is idle whenever their threads
    are busy: variants that aren't surely unlike are alike then.
    """
    by_share = sorted(_by_variant(slots).values(), key=_closed_share)
    if not by_share:
        return False
    least, most = by_share[0], by_share[-1]
    low, high = _closed_share(least), _closed_share(most)
    if low <= REPORTED_LIMIT or low < NEARLY_ALIKE * high:
        return False
    if low >= ALIKE * high:
        return True
    high_shares, low_shares = (
        np.array([_closed_share([slot]) for slot in mine]) for mine in (most, least)
    )
    if min(len(high_shares), len(low_shares)) < FEWEST_SLOTS:
        return False
    return welch(high_shares, low_shares, 0.95).low <= 0


KEEP_ALIVE = _KeptAlike(
    name="keep-alive",
    broken=lambda slot: _closed_share([slot]) > CLOSED_LIMIT,
    what=_closed_words,
    fix=SAME,
)

RETRIED = RunRule("retried", _retry_notes)

UNWANTED_KEEP_ALIVE = SlotRule(
    name="unwanted-keep-alive",
    broken=lambda slot: slot.load.keepalive.requested == "never" and _reused_requests(slot) > 0,
    what=lambda slots: (
        f"{count(sum(map(_reused_requests, slots)), 'request')} "
        "went over a connection used before, although each was to open its own"
    ),
    fix="Use another load generator, or ask for keep-alive.",
)

IDLE_CONNECTIONS = SlotRule(
    name="idle-connections",
    broken=lambda slot: (
        (idle := slot.load.idle_connections) is not None and idle.held < HELD_LIMIT * idle.requested
    ),
    what=_fewest_held,
    fix="Raise the server's limits of connections, workers and open files, or hold fewer: "
    "--set load.idle_connections=N.",
)

KEEPING_RULES = (KEEP_ALIVE, UNWANTED_KEEP_ALIVE, IDLE_CONNECTIONS)


def _dropped_connections(readings: Readings) -> int:
    """Count connections that the listeners dropped, or all of a network namespace of their own."""
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


NETWORK_RULES = (LISTEN_OVERFLOW, SYN_RETRANSMITS, PORTS_USED_UP)
