"""What the servers' own counts tell: notes, since they explain figures and don't spoil them."""

from collections.abc import Iterator, Sequence

from webdyno.judge.evidence import Evidence
from webdyno.judge.validity.rule import readings_of
from webdyno.judge.words import number, plural
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Finding
from webdyno.model.records import SlotRecord


def findings(evidence: Evidence, experiment: Experiment) -> list[Finding]:
    """Hold the servers' counts against the load's, arm by arm."""
    load = experiment.load
    found: list[Finding] = []
    for arm in experiment.arms:
        slots = [slot for slot in evidence.slots if slot.arm == arm]
        # The load's own count leaves the requests of slow readers and idle connections out.
        if load.slow_readers is None and not load.idle_connections:
            found += _miscounted(arm, slots)
        found += _waited(arm, slots, load.connections)
    return found


def _miscounted(arm: str, slots: Sequence[SlotRecord]) -> Iterator[Finding]:
    pairs = [(slot, counted) for slot in slots if (counted := counted_by_front(slot)) is not None]
    off = [(slot, counted) for slot, counted in pairs if not _accounted_for(slot, counted)]
    if off:
        sent = sum(slot.load.requests.sent or 0 for slot, _ in off)
        counted = sum(counted for _, counted in off)
        yield _note(
            "request-count",
            arm,
            f"the server counted {plural(counted, 'request')} where the load generator sent "
            f"{number(sent)} ({plural(len(off), 'slot')} of {len(slots)})",
            "If the server counted more, somebody else was asking it: look for monitoring or "
            "another load. If it counted less, requests never reached it.",
        )


def counted_by_front(slot: SlotRecord) -> int | None:
    """Give the requests that the server counted to which clients talk; None if it doesn't."""
    if slot.readings is None or slot.readings.front not in slot.readings.status:
        return None
    return slot.readings.status[slot.readings.front].requests


def _accounted_for(slot: SlotRecord, counted: int) -> bool:
    """Whether the difference can be requests that the server never read to their end."""
    requests, failures = slot.load.requests, slot.load.failures
    if requests.sent is None:
        return True
    return abs(counted - requests.sent) <= (requests.unanswered or 0) + failures.total


def _waited(arm: str, slots: Sequence[SlotRecord], connections: int) -> Iterator[Finding]:
    """Find services all of whose workers were taken, or in whose queue connections stood."""
    by_role = {
        (role, status.workers): status
        for readings in readings_of(slots)
        for role, status in readings.status.items()
        if status.workers is not None
        and status.most_busy is not None
        and (status.most_waiting or connections > status.workers == status.most_busy)
    }
    for (role, workers), status in by_role.items():
        queue = (
            f"; up to {plural(status.most_waiting, 'connection')} stood in its queue"
            if status.most_waiting
            else ""
        )
        yield _note(
            "workers-all-busy",
            arm,
            f"{number(status.most_busy or 0)} of {plural(workers or 0, 'worker')} of {role} had a "
            f"request at the same time, with {number(connections)} connections: further requests "
            f"waited for one{queue}",
            "Response times include that waiting. Where it isn't what is asked about, use fewer "
            f"connections or give {role} more workers.",
        )


def _note(rule: str, arm: str, what: str, remedy: str) -> Finding:
    return Finding(rule=rule, severity="note", arm=arm, what=f"arm {arm}: {what}", remedy=remedy)
