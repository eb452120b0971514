"""Whether the run is one piece, and enough was measured.

One piece: measured under the same conditions (`mixed-sessions`), with servers that lived through it
(`incident`). Enough: responses for a percentile (`few-samples`), and rounds (`few-rounds`).
"""

from collections.abc import Iterator, Sequence

from webdyno.core.format import count, number
from webdyno.core.histogram import merge_encoded
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import THROUGHPUT, MetricRule, metrics_reported_by
from webdyno.core.records import IncidentRecord, SlotRecord
from webdyno.evidence.differences import surroundings
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import exceeded_by_largest
from webdyno.validity.rule import TOO_MANY_EXCLUDED, RunRule

SHOWN_DIFFERENCES = 3


def _sessions(data: PointData) -> Iterator[ValidityWarning]:
    """Find what changed between the starts of measuring: figures across it can't be compared."""
    differences = {
        difference.what: f"{difference.what} was {difference.before}, then {difference.after}"
        for session in data.sessions
        for difference in surroundings(data.head, session)
    }
    if differences:
        more = len(differences) - SHOWN_DIFFERENCES
        shown = "; ".join(list(differences.values())[:SHOWN_DIFFERENCES])
        yield ValidityWarning(
            rule=SESSIONS.name,
            severity="invalid",
            variant=None,
            what="the run was resumed under other conditions: "
            f"{shown}{f'; and {number(more)} more' if more > 0 else ''}",
            fix="Measure again with the same experiment in a new folder; `webdyno diff` can "
            "then compare the two.",
        )


SESSIONS = RunRule("mixed-sessions", _sessions)


def _incidents(data: PointData) -> Iterator[ValidityWarning]:
    """Warn of the load generator and each variant with incidents, naming the first.

    An incident invalidates its round. Where that was measured again, the run is whole, unless so
    many were that the others are there by luck.
    """
    for variant in (None, *data.experiment.variants):
        finished = {
            this_round.record.round
            for this_round in data.rounds
            if variant is None or this_round.of(variant)
        }
        mine = [incident for incident in data.incidents if incident.variant == variant]
        if not mine:
            continue
        lost = [incident for incident in mine if incident.round not in finished]
        too_many = len(mine) > max(1.0, TOO_MANY_EXCLUDED * len(finished))
        first = lost[0] if lost else mine[0]
        more = f" (and {count(len(mine) - 1, 'more incident')})" if len(mine) > 1 else ""
        nobody = "between hosts" if first.of_hosts else "the load generator"
        whose = nobody if variant is None else f"variant {variant}"
        again = "" if lost else "; measured again since, from the round's start"
        lines = " | ".join(first.log_tail[-3:])
        log_end = f"; its log ends: {lines}" if lines else ""
        yield ValidityWarning(
            rule=INCIDENT.name,
            severity="invalid" if variant is not None and (lost or too_many) else "note",
            variant=variant,
            what=f"{whose}: {first.what} (round {first.round}){more}{again}{log_end}",
            fix=_fix(first, resume=bool(lost)),
        )


def _fix(incident: IncidentRecord, *, resume: bool) -> str:
    then = ", then continue with `webdyno resume`" * resume
    if incident.of_hosts:
        return f"Look at that host, and at the network to it{then}."
    if incident.variant is None:
        return f"See whether the kernel killed it (`dmesg`: out of memory?){then}."
    return f"Read its log in the run's folder, or try it with `webdyno up`{then}."


INCIDENT = RunRule("incident", _incidents)


def _few_samples(data: PointData) -> Iterator[ValidityWarning]:
    """Find variants whose percentiles stand on too few requests in some round."""
    if not any(slot.load.latency_us.histogram for slot in data.slots):
        return  # the load generator gave no distribution of times
    rules = [rule for rule in metrics_reported_by(data.slots, THROUGHPUT) if rule.quantile]
    for variant in data.experiment.variants:
        by_round = [slots for this_round in data.rounds if (slots := this_round.of(variant))]
        if not by_round:
            continue
        of_events = [rule for rule in rules if rule.needs == "events"]
        yield from _too_few(variant, by_round, [rule for rule in rules if rule not in of_events])
        yield from _too_few(variant, by_round, of_events)


def _too_few(
    variant: str, by_round: Sequence[Sequence[SlotRecord]], rules: Sequence[MetricRule]
) -> Iterator[ValidityWarning]:
    had = {rule.name: min(_samples(slots, rule) for slots in by_round) for rule in rules}
    short = {
        rule.name: rule.quantile
        for rule in rules
        if rule.quantile and had[rule.name] < exceeded_by_largest(rule.quantile)
    }
    if short:
        highest = max(short.values())
        fewest = min(had[name] for name in short)
        samples = count(fewest, "event" if rules[0].needs == "events" else "response")
        yield ValidityWarning(
            rule=FEW_SAMPLES.name,
            severity="invalid",
            variant=variant,
            what=f"variant {variant}: a round has only {samples}, but the "
            f"{highest * 100:g}th percentile needs {number(exceeded_by_largest(highest))}",
            fix="Make slots longer: --set measure.slot_s=5.",
            metrics=list(short),
        )


def _samples(slots: Sequence[SlotRecord], rule: MetricRule) -> int:
    if rule.needs != "events":
        return sum(slot.load.requests.completed for slot in slots)
    return merge_encoded(rule.times_of(slot.load).histogram for slot in slots).total


FEW_SAMPLES = RunRule("few-samples", _few_samples)


def _few_rounds(data: PointData) -> Iterator[ValidityWarning]:
    finished, fewest = len(data.rounds), data.measure.min_rounds
    if finished < fewest:
        yield ValidityWarning(
            rule=FEW_ROUNDS.name,
            severity="note",
            variant=None,
            what=f"only {count(finished, 'finished round')}; a verdict needs at least {fewest}",
            fix="Continue with `webdyno resume`.",
        )


FEW_ROUNDS = RunRule("few-rounds", _few_rounds)
