"""The validity rules: each one small and pure, each message with cause and remedy."""

from collections.abc import Iterable, Sequence

from webdyno.judge.evidence import Evidence, gather
from webdyno.judge.validity import (
    answers,
    ceiling,
    certificate,
    client,
    enough,
    host,
    incidents,
    keepalive,
    link,
    network,
    rate,
    servers,
    status,
    trend,
)
from webdyno.judge.validity.rule import DISTURBANCES_TOLERATED, SlotRule
from webdyno.model.judgement import Finding, LeftOutSlot
from webdyno.model.records import Record
from webdyno.model.run import RunHead

SLOT_RULES = (
    *answers.RULES,
    *servers.RULES,
    *keepalive.RULES,
    *rate.RULES,
    *client.RULES,
    *ceiling.RULES,
    *network.RULES,
    *host.RULES,
)
"""Rules that each slot keeps or breaks by itself."""

LASTING_RULES = tuple(rule for rule in SLOT_RULES if rule.tolerated < DISTURBANCES_TOLERATED)
"""Those of them whose causes don't pass by themselves."""


def findings(head: RunHead, records: Sequence[Record]) -> list[Finding]:
    """Apply every rule to a run; what makes it invalid comes first."""
    return findings_of(head, gather(records))


def findings_of(head: RunHead, evidence: Evidence) -> list[Finding]:
    """Apply every rule to a run's evidence, no slot left out; what makes it invalid comes first."""
    arms = list(head.experiment.arms)
    found = [
        *incidents.findings(evidence, arms),
        *certificate.findings(evidence, arms),
        *(finding for rule in SLOT_RULES for finding in rule.findings(evidence, arms)),
        *link.findings(evidence, arms),
        *trend.findings(evidence, arms),
        *status.findings(evidence, head.experiment),
        *enough.few_samples(evidence, arms),
        *enough.few_blocks(evidence, head.experiment.measure),
    ]
    return sorted(found, key=lambda finding: finding.severity != "invalid")


def left_out_slots(evidence: Evidence, rules: Iterable[SlotRule] = SLOT_RULES) -> list[LeftOutSlot]:
    """List the slots that break a rule."""
    return [left_out for rule in rules for left_out in rule.left_out(evidence.slots)]


def valid_for(evidence: Evidence, left_out: Iterable[LeftOutSlot], metric: str) -> Evidence:
    """Keep the slots that count for a metric."""
    return evidence.without(
        (slot.block, slot.slot) for slot in left_out if not slot.metrics or metric in slot.metrics
    )
