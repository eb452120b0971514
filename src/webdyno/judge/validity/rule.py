"""What a validity rule is, and how broken slots become findings."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from webdyno.judge.evidence import Evidence
from webdyno.judge.words import plural
from webdyno.model.judgement import Finding, LeftOutSlot
from webdyno.model.readings import Readings
from webdyno.model.records import SlotRecord

TOO_MANY_LEFT_OUT = 0.1
"""Usual share of an arm's slots that may be left out: what fails more often belongs to the arm."""

DISTURBANCES_TOLERATED = 0.5
"""The same for what comes from outside: the slots that are left are as good as ever."""

RESPONSE_METRICS = ("response_p50_us", "response_p99_us")
TIMING_METRICS = ("rate_rps", *RESPONSE_METRICS)
"""Metrics that the client's speed and the link's enter; server CPU time per request isn't one."""


@dataclass(frozen=True)
class SlotRule:
    """A rule that each measured slot keeps or breaks by itself."""

    name: str
    broken: Callable[[SlotRecord], bool]
    what: Callable[[Sequence[SlotRecord]], str]
    """All slots of one arm that broke the rule -> what is wrong, with figures."""
    remedy: str
    spoils: Sequence[str] = ()
    """The metrics that a broken slot is left out of; all when empty."""
    tolerated: float = TOO_MANY_LEFT_OUT
    """Share of an arm's slots that may be left out before the arm has no valid result."""

    def left_out(self, slots: Iterable[SlotRecord]) -> list[LeftOutSlot]:
        """List the slots that break the rule."""
        return [
            LeftOutSlot(
                block=slot.block,
                slot=slot.slot,
                arm=slot.arm,
                rule=self.name,
                metrics=list(self.spoils),
            )
            for slot in slots
            if self.broken(slot)
        ]

    def findings(self, evidence: Evidence, arms: Iterable[str]) -> list[Finding]:
        """Give a finding for each arm with broken slots: invalid when they are too many."""
        return [
            self._finding(arm, bad, total=len(mine))
            for arm in arms
            if (mine := [slot for slot in evidence.slots if slot.arm == arm])
            and (bad := [slot for slot in mine if self.broken(slot)])
        ]

    def _finding(self, arm: str, bad: Sequence[SlotRecord], total: int) -> Finding:
        too_many = len(bad) > self.tolerated * total
        scope = "" if too_many else f" ({plural(len(bad), 'slot')} of {total}, left out)"
        return Finding(
            rule=self.name,
            severity="invalid" if too_many else "note",
            arm=arm,
            what=f"arm {arm}: {self.what(bad)}{scope}",
            remedy=self.remedy,
            metrics=list(self.spoils),
        )


def with_readings(broken: Callable[[Readings], bool]) -> Callable[[SlotRecord], bool]:
    """Make a slot rule of one about probe readings; a slot without any doesn't break it."""
    return lambda slot: slot.readings is not None and broken(slot.readings)


def readings_of(slots: Iterable[SlotRecord]) -> list[Readings]:
    """Give the readings of slots that have any."""
    return [slot.readings for slot in slots if slot.readings is not None]
