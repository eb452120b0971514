"""Whether the link between client and servers was full: then it was the link that was measured.

A link with a limit is part of the experiment, so a full one spoils nothing: it is the reason why
arms are equivalent over it, or why a faster one isn't ahead by more.
"""

from collections.abc import Iterable, Sequence

from webdyno.judge.evidence import Evidence
from webdyno.judge.validity.ceiling import reaches_ceiling
from webdyno.judge.validity.rule import TIMING_METRICS, readings_of
from webdyno.judge.words import percent, plural
from webdyno.model.judgement import Comparison, Finding, Verdict
from webdyno.model.readings import Readings
from webdyno.model.records import SlotRecord

NAME = "link-bound"

LINK_LIMIT = 0.9
"""Share of a link's bandwidth from which on it may be the link that is measured."""

MOST_SLOTS = 0.5
"""Share of an arm's slots with a full link from which on the link was the arm's limit."""


def findings(evidence: Evidence, arms: Iterable[str]) -> list[Finding]:
    """Note each arm that filled the link in at least half of its slots."""
    found = []
    for arm in arms:
        mine = [slot for slot in evidence.slots if slot.arm == arm]
        full = [slot for slot in mine if _fills_link(slot)]
        if full and len(full) >= MOST_SLOTS * len(mine):
            found.append(_finding(arm, full, len(mine)))
    return found


def reason(comparison: Comparison, findings: Iterable[Finding]) -> str | None:
    """Say that the link made two arms equivalent, if it did."""
    bound = {finding.arm for finding in findings if finding.rule == NAME}
    if (
        comparison.verdict is Verdict.EQUIVALENT
        and comparison.metric in TIMING_METRICS
        and {comparison.a, comparison.b} <= bound
    ):
        return f"both filled the link, which is the limit ({NAME})"
    return None


def _fills_link(slot: SlotRecord) -> bool:
    if slot.readings is None:
        return False
    return _link_share(slot.readings) > LINK_LIMIT or reaches_ceiling(slot, "link")


def _link_share(readings: Readings) -> float:
    network = readings.network
    if not network.link_bytes_per_s:
        return 0.0
    busier_way = max(network.sent_bytes, network.received_bytes)
    return busier_way / readings.host.took_s / network.link_bytes_per_s


def _finding(arm: str, full: Sequence[SlotRecord], total: int) -> Finding:
    shares = sorted(_link_share(readings) for readings in readings_of(full))
    carried = f"the link carried {percent(shares[len(shares) // 2])} of what it can"
    if not shares[-1]:
        carried = "the rate was what the link allows at most (webdyno calibrate)"
    return Finding(
        rule=NAME,
        severity="note",
        arm=arm,
        what=f"arm {arm}: in {len(full)} of {plural(total, 'slot')} {carried}: "
        "the link was measured, not the server, which may be faster than it looks",
        remedy="Use a faster link (--link) or smaller bodies to compare the servers themselves; "
        "server CPU time per request is still comparable.",
        metrics=list(TIMING_METRICS),
    )
