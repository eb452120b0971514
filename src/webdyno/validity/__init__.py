"""The validity rules: each one small and pure, each message with cause and fix.

A file a family, whose docstring has the codes of its rules: `client`, `connections`,
`growing_state`, `others` (other programs, and a host that takes CPU time: steal), `over_time`,
`preflight`, `responses`, `servers`, `starts`, `whole_run`. A rule's text stands at its code.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from webdyno.core.judgement import ExcludedSlot, ValidityWarning
from webdyno.core.metrics import METRICS, metrics_of_kind
from webdyno.core.records import PilotRecord, RoundRecord, SessionRecord, SlotRecord, StopRecord
from webdyno.evidence.log_ratios import counts_apart
from webdyno.evidence.noise import half_width
from webdyno.evidence.point_data import PointData, RunData, compute_once
from webdyno.evidence.slot_stalls import holds_stall
from webdyno.validity import (
    client,
    connections,
    growing_state,
    others,
    over_time,
    preflight,
    responses,
    servers,
    starts,
    whole_run,
)
from webdyno.validity.rule import INTERFERENCE_TOLERATED, TIMING, Rule, SlotRule

SLOT_RULES: dict[str, SlotRule] = {
    rule.name: rule
    for rule in (
        *responses.RULES,
        *servers.RULES,
        *connections.KEEPING_RULES,
        *client.RULES,
        *connections.NETWORK_RULES,
        *others.RULES,
    )
}
"""Rules that each slot keeps or breaks by itself, by name."""

FIRST_RULES: tuple[Rule, ...] = (
    whole_run.SESSIONS,
    whole_run.INCIDENT,
    preflight.PREFLIGHT,
    responses.FEW_READS,
    responses.OTHER_SIZE_UNDER_LOAD,
)
"""Those that are reported before them."""
LAST_RULES: tuple[Rule, ...] = (
    connections.RETRIED,
    connections.LINK_LIMITED,
    growing_state.STATE_GROWS,
    *over_time.TRENDS,
    responses.REQUEST_COUNT,
    servers.WORKERS_ALL_BUSY,
    starts.STARTS_DIFFER,
    *over_time.LATER_RULES,
    servers.CHEAP_BY_QUEUEING,
    whole_run.FEW_SAMPLES,
    whole_run.FEW_ROUNDS,
)
"""Those that are reported after them."""

WRONG_RESPONSES = tuple(rule.name for rule in responses.RULES if rule is not responses.NO_RESPONSES)
FOLLOWS_FROM = {
    "non-2xx": ("wrong-status",),
    "wrong-body": ("different-body",),
    "malformed": ("no-response",),
    "truncated": ("no-response",),
    "resets": ("no-response",),
    "no-responses": ("wrong-status", "different-body", "no-response", "incident", *WRONG_RESPONSES),
    "few-samples": ("wrong-status", "no-response", "no-responses", *WRONG_RESPONSES),
}
"""By rule: those that explain it, if they make the same variant's figures invalid."""
SAME_WITH_CAUSE = {over_time.OVER_THE_ROUND.name: growing_state.STATE_GROWS.name}
"""By rule: the one that reports the same of a variant, and what it comes from."""
SHORT_RUN = "few-rounds"


def all_rules() -> tuple[Rule, ...]:
    """Return the rules of runs that are measured in slots, in the order of their reports."""
    return (*FIRST_RULES, *SLOT_RULES.values(), *LAST_RULES)


@compute_once
def warnings_of(data: PointData, rules: tuple[Rule, ...] | None = None) -> list[ValidityWarning]:
    """Apply rules to what was measured, and give causes; what makes it invalid comes first."""
    warnings = [warning for rule in rules or all_rules() for warning in rule.warnings(data)]
    causes = without_consequences(warnings, data.measure.decide_on)
    return sorted(causes, key=lambda warning: warning.severity != "invalid")


def without_consequences(
    warnings: Sequence[ValidityWarning], decide_on: str
) -> list[ValidityWarning]:
    """Exclude what has its cause among the warnings; of an invalid run also that it is short."""
    causes = {
        (warning.rule, warning.variant) for warning in warnings if warning.severity == "invalid"
    }
    warned = {(warning.rule, warning.variant) for warning in warnings}
    invalidated = any(
        warning.severity == "invalid" and (not warning.metrics or decide_on in warning.metrics)
        for warning in warnings
    )
    return [
        warning
        for warning in warnings
        if not (warning.rule == SHORT_RUN and invalidated)
        and not any(
            (cause, warning.variant) in causes for cause in FOLLOWS_FROM.get(warning.rule, ())
        )
        and (SAME_WITH_CAUSE.get(warning.rule), warning.variant) not in warned
    ]


@compute_once
def excluded_slots(data: PointData, *, lasting: bool = False) -> list[ExcludedSlot]:
    """List the slots that break a rule, and those that hold a stall which a long look counts.

    Those that had interference stay where intervals are no narrower without them. With `lasting`
    only rules count whose causes don't pass by themselves.
    """
    broken = [
        excluded
        for rule in SLOT_RULES.values()
        if not lasting or rule.tolerated < INTERFERENCE_TOLERATED
        for excluded in rule.excluded_slots(data.slots)
    ]
    return _where_that_narrows(data, broken) + [
        ExcludedSlot(
            round=slot.round,
            slot=slot.slot,
            variant=slot.variant,
            rule="stall",
            metrics=metrics_of_kind(TIMING, data.slots),
        )
        for look in data.looks
        if look.stalls and counts_apart(data, look.variant)
        for slot in data.of_variant(look.variant)
        if holds_stall(slot, look.stalls.length_s)
    ]


def _where_that_narrows(data: PointData, excluded: Sequence[ExcludedSlot]) -> list[ExcludedSlot]:
    """Keep slots that had interference for the metrics whose intervals are no wider with them."""
    interference = [slot for slot in excluded if only_interference(slot)]
    others = [slot for slot in excluded if not only_interference(slot)]

    def narrows(metric: str) -> bool:
        rule = METRICS[metric]
        without, with_them = (
            half_width(without_slots(data, out, metric), rule) for out in (excluded, others)
        )
        return without < with_them

    asked = {metric for slot in interference for metric in slot.metrics}
    narrowed = set(filter(narrows, asked))
    return others + [
        slot.replace(metrics=metrics)
        for slot in interference
        if (metrics := [metric for metric in slot.metrics if metric in narrowed])
    ]


def only_interference(excluded: ExcludedSlot) -> bool:
    """Return whether a slot was excluded for what could be bounded as well."""
    rule = SLOT_RULES.get(excluded.rule)
    return rule is not None and rule.has_bias_bound


def excluded_words(data: PointData) -> str:
    """Name the rules that slots were excluded by, with their number: `steal 3, non-2xx 1`."""
    rules = Counter(slot.rule for slot in excluded_slots(data))
    return ", ".join(f"{rule} {many}" for rule, many in rules.most_common())


def rule_of_most(excluded: Iterable[ExcludedSlot], metric: str = "") -> str:
    """Name the rule that left most slots out (of a metric); empty where none was."""
    rules = Counter(
        slot.rule for slot in excluded if not metric or not slot.metrics or metric in slot.metrics
    )
    return rules.most_common(1)[0][0] if rules else ""


@compute_once
def valid_for(data: PointData, metric: str) -> PointData:
    return without_slots(data, excluded_slots(data), metric)


def without_slots(data: PointData, excluded: Iterable[ExcludedSlot], metric: str) -> PointData:
    """Exclude those of the slots that don't count for a metric."""
    return data.without(
        (slot.round, slot.slot) for slot in excluded if not slot.metrics or metric in slot.metrics
    )


def counting_share(points: Iterable[PointData]) -> float | None:
    """Return the share of the time of pilots and rounds that was spent in windows that count.

    Rounds that don't count, for an adjustment's sake, took time all the same. None before the first
    round has ended.
    """
    counted_s = took_s = 0.0
    for data in points:
        broken = {(slot.round, slot.slot) for slot in excluded_slots(data) if not slot.metrics}
        counted_s += sum(
            slot.load.measured_s for slot in data.slots if (slot.round, slot.slot) not in broken
        )
        took_s += used_s(data)
    return counted_s / took_s if took_s else None


def used_s(data: PointData | RunData) -> float:
    """Return how much of its time is used up: what pilots and finished rounds took."""
    return sum(
        record.took_s for record in data.records if isinstance(record, RoundRecord | PilotRecord)
    )


def spent_s(run: RunData) -> float:
    """Return how long a run has measured in all its sessions, unfinished rounds included."""
    spent, session = 0.0, list[datetime]()
    for record in run.records:
        match record:
            case SessionRecord():
                spent, session = spent + _span_s(session), []
            case PilotRecord() | SlotRecord():
                session.append(record.started_at)
            case StopRecord():
                session.append(record.stopped_at)
    return spent + _span_s(session)


def _span_s(moments: Sequence[datetime]) -> float:
    return (max(moments) - min(moments)).total_seconds() if moments else 0.0
