"""Whether connections were kept as asked: opening them is a good part of a small request's cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from webdyno.judge.measured import Measured
from webdyno.judge.validity.rule import SlotRule
from webdyno.model.format import count, number, percent
from webdyno.model.judgement import Finding, LeftOutSlot
from webdyno.model.metrics import answers
from webdyno.model.records import SlotRecord
from webdyno.model.run import RunHead

CLOSED_LIMIT = 0.005
"""Share of answers after which the server may close although the connection was to be kept.

nginx's default, one in 1000, stays below it; one in 100 doesn't.
"""

ALL_CLOSED = 0.9
"""Share of answers from which on a server keeps no connection; some are closed after the slot."""

HELD_LIMIT = 0.99
"""Share of the idle connections that must be open: one may just be opened again at the end."""


def _closed_early(slot: SlotRecord) -> bool:
    closed = slot.load.all_of_it.server_closed or 0
    return slot.load.keepalive.asked != "never" and closed > CLOSED_LIMIT * max(answers(slot), 1)


def _closed(slots: Sequence[SlotRecord]) -> str:
    closed = sum(slot.load.all_of_it.server_closed or 0 for slot in slots)
    total = sum(answers(slot) for slot in slots)
    return (
        f"the server closed {count(closed, 'connection')} that should have been kept, one in "
        f"{number(total / closed)} answers (limit: {percent(CLOSED_LIMIT)} of the answers)"
    )


def _reused(slot: SlotRecord) -> int:
    return slot.load.all_of_it.connections.reused_requests or 0


def _kept_on(slot: SlotRecord) -> bool:
    return slot.load.keepalive.asked == "never" and bool(
        slot.load.all_of_it.connections.reused_requests
    )


def _let_go(slot: SlotRecord) -> bool:
    idle = slot.load.idle_connections
    return idle is not None and idle.held < HELD_LIMIT * idle.asked


def _fewest_held(slots: Sequence[SlotRecord]) -> str:
    counts = [idle for slot in slots if (idle := slot.load.idle_connections)]
    fewest = min(counts, key=lambda idle: idle.held)
    return f"only {number(fewest.held)} of {number(fewest.asked)} idle connections were kept open"


@dataclass(frozen=True)
class _KeptAlike(SlotRule):
    """Servers that close every connection, all of them, aren't unlike: it is how they answer.

    So does gunicorn's usual worker: who compares two revisions of such a program has this in both.
    """

    def left_out(self, slots: Sequence[SlotRecord]) -> list[LeftOutSlot]:
        """List the slots that break the rule, unless all do alike."""
        return [] if _none_keeps(slots) else super().left_out(slots)

    def findings(self, measured: Measured, head: RunHead) -> list[Finding]:
        """Tell of arms that close connections; a note where all close all of them."""
        if not _none_keeps(measured.slots):
            return super().findings(measured, head)
        what = "no arm keeps connections: each request opened its own, and that is in all figures"
        remedy = "To say so in the experiment: --set load.keepalive=never."
        return [Finding(rule=self.name, severity="note", arm=None, what=what, remedy=remedy)]


def _none_keeps(slots: Sequence[SlotRecord]) -> bool:
    """Whether all arms close each connection that they were to keep."""
    return bool(slots) and all(
        slot.load.keepalive.asked != "never"
        and (slot.load.all_of_it.server_closed or 0) >= ALL_CLOSED * max(answers(slot), 1)
        for slot in slots
    )


KEEP_ALIVE = _KeptAlike(
    name="keep-alive",
    broken=_closed_early,
    what=_closed,
    remedy="Give all arms the same keep-alive: raise the server's limit of requests per "
    "connection and its keep-alive timeout, or ask for new connections in all arms with "
    "--set load.keepalive=never.",
)

UNWANTED_KEEP_ALIVE = SlotRule(
    name="unwanted-keep-alive",
    broken=_kept_on,
    what=lambda slots: (
        f"{count(sum(map(_reused, slots)), 'request')} "
        "went over a connection used before, although each was to open its own"
    ),
    remedy="This is the load generator's mistake: use another one, or ask for keep-alive.",
)

IDLE_CONNECTIONS = SlotRule(
    name="idle-connections",
    broken=_let_go,
    what=_fewest_held,
    remedy="Raise the server's limits of connections, workers and open files (see `webdyno stacks "
    "NAME`) and its keep-alive timeout, or hold fewer: --set load.idle_connections=N.",
)

RULES = (KEEP_ALIVE, UNWANTED_KEEP_ALIVE, IDLE_CONNECTIONS)
