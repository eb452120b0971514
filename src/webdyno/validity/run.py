"""Whether the run was one piece, every server lived through it, and enough was measured.

Starts may differ: a server is steady within each start, and another one in the next. Memory layout,
huge pages, a hash seed or a just-in-time compiler may be drawn once at each start. Where that
decides, longer slots say nothing more, and more starts do.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from webdyno.core.format import count, number, percent
from webdyno.core.histogram import merge_encoded
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import CPU_TIME, METRICS, THROUGHPUT, MetricRule, metrics_reported_by
from webdyno.core.records import IncidentRecord, SlotRecord
from webdyno.evidence.differences import surroundings
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import Logs, exceeded_by_largest
from webdyno.validity.rule import TOO_MANY_EXCLUDED, RunRule, note

SHOWN_DIFFERENCES = 3
FEWEST_STARTS = 6
SMALLEST = 0.015
"""Differences between starts (standard deviation of ln) that are worth a word."""
BEYOND_SLOTS = 4.0
"""Times the scatter of slots, so much starts have to scatter."""
GAP_SDS = 6.0
"""Between two states, in standard deviations within them: a normal sample seldom has such a gap."""


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


class Starts(NamedTuple):
    """How a variant's starts differ."""

    between: float
    """Standard deviation of ln(value) between starts; and `within` them, between slots."""
    within: float
    states: tuple[float, float] | None
    """Geometric means of two groups of starts; None where they don't fall apart into two."""


def starts_that_differ(data: PointData, variant: str, rule: MetricRule) -> Starts | None:
    """Return how a variant's starts differ; None where they don't, or are too few to report."""
    others = {slot.variant for slot in data.slots} - {variant}
    return how_starts_differ(
        data.slot_logs(variant, rule), [data.slot_logs(other, rule) for other in others]
    )


def how_starts_differ(
    of_variant: Mapping[int, Logs], of_others: Sequence[Mapping[int, Logs]]
) -> Starts | None:
    """Return how starts differ by ln(value) of each slot of the variant and of others, by round.

    What weighs on all variants of a round is the machine's: the variant has to differ from start to
    start next to each of the others as well.
    """
    groups = {n: slots for n, slots in of_variant.items() if len(slots) > 1}
    if len(groups) < FEWEST_STARTS:
        return None
    means = np.array([float(logs.mean()) for logs in groups.values()])
    within = float(np.sqrt(np.mean([float(logs.var(ddof=1)) for logs in groups.values()])))
    between = float(means.std(ddof=1))
    nearest = min((_nearest(groups, other) for other in of_others), default=0.0)
    if min(between, nearest) < max(SMALLEST, BEYOND_SLOTS * within):
        return None
    return Starts(between, within, _two_states(means, within))


def _nearest(groups: Mapping[int, Logs], other: Mapping[int, Logs]) -> float:
    both = [float(groups[n].mean() - other[n].mean()) for n in groups if n in other]
    return float(np.std(both, ddof=1)) if len(both) >= FEWEST_STARTS else 0.0


def _two_states(means: Logs, within: float) -> tuple[float, float] | None:
    """Split starts at their largest gap, if both sides have two and are close to each other."""
    ordered = np.sort(means)
    index = int(np.argmax(np.diff(ordered))) + 1
    low, high = ordered[:index], ordered[index:]
    if min(len(low), len(high)) < 2:
        return None
    spread = max(float(low.std(ddof=1)), float(high.std(ddof=1)), within)
    if high[0] - low[-1] < GAP_SDS * spread:
        return None
    return exp(float(low.mean())), exp(float(high.mean()))


def variants_whose_starts_differ(data: PointData) -> Iterator[tuple[str, MetricRule, Starts]]:
    """Yield them, by CPU per request, which scatters least, or else by the deciding metric."""
    names = dict.fromkeys((CPU_TIME, data.measure.decide_on))
    for variant in data.experiment.variants:
        rules = (METRICS[name] for name in names)
        seen = ((rule, starts_that_differ(data, variant, rule)) for rule in rules)
        if strongest := next(((rule, starts) for rule, starts in seen if starts), None):
            yield variant, *strongest


def _starts(data: PointData) -> Iterator[ValidityWarning]:
    for variant, rule, starts in variants_whose_starts_differ(data):
        label = rule.metric.label
        within = f"within a start its {label} varies by {percent(starts.within)}"
        if starts.states is None:
            between = percent(starts.between)
            words = f"its starts differ: {within}, from start to start by {between}"
        else:
            low, high = starts.states
            words = (
                "each of its starts is in one of two states, 1.00 and "
                f"{number(high / low, 2)} times the {label}: {within}"
            )
        yield note(
            "starts-differ",
            variant,
            words,
            "More starts help, longer slots don't: give it more time. What is drawn at a start "
            "decides: memory layout, huge pages, a hash seed, a compiler. `webdyno explain "
            "--profile` shows where.",
        )


START_RULES = (RunRule("starts-differ", _starts),)
