"""The whole judgement of a run: comparisons on every metric, warnings, one sentence."""

from collections.abc import Sequence
from statistics import median

from webdyno.comparison.comparison import (
    asked_about,
    compare_with_baseline,
    same_variant_warnings,
    variant_value,
)
from webdyno.comparison.endpoints import JUDGED_BY, judge_endpoints
from webdyno.comparison.saturation import saturation
from webdyno.comparison.sentences import headline
from webdyno.comparison.time_spent import explanations
from webdyno.comparison.variance import variance_splits
from webdyno.comparison.waiting import waiting
from webdyno.core.format import upper_first
from webdyno.core.judgement import (
    ClearFact,
    Comparison,
    EndpointJudgement,
    ExcludedSlot,
    Judgement,
    ValidityWarning,
    VariantFacts,
    VariantValue,
    Verdict,
)
from webdyno.core.metrics import CAPACITY, CPU_TIME, METRICS, MetricRule, metrics_reported_by
from webdyno.evidence.cost import costs_at_rate, costs_at_rest, with_costs
from webdyno.evidence.overload import overloads
from webdyno.evidence.point_data import PointData
from webdyno.validity import excluded_slots, only_interference, valid_for, without_slots
from webdyno.validity.network import both_filled_link
from webdyno.validity.rule import WORK

WEIGHT = (
    Verdict.INVALID,
    Verdict.INCOMPLETE,
    Verdict.INCONCLUSIVE,
    Verdict.FASTER,
    Verdict.SLOWER,
    Verdict.EQUIVALENT,
)
"""With several variants the run's verdict is the first of these that any comparison has."""
CLEAR = [Verdict.SLOWER, Verdict.FASTER, Verdict.EQUIVALENT]
"""What says most first."""


def judge_comparisons(data: PointData, broken: Sequence[ValidityWarning]) -> Judgement:
    """Compare each variant with the baseline on every metric; `broken` are rules of validity."""
    experiment = data.experiment
    decide_on = experiment.measure.decide_on
    warnings = list(broken)
    excluded = excluded_slots(data)
    variants: list[VariantValue] = []
    comparisons: list[Comparison] = []
    metrics = metrics_reported_by(data.slots, decide_on)
    for rule in metrics:
        valid = valid_for(data, rule.name)
        variants += [variant_value(valid, variant, rule) for variant in experiment.variants]
        compared = compare_with_baseline(valid, rule)
        warnings += _flips(compared, _with_all_slots(data, excluded, rule))
        comparisons += _with_warnings(compared, warnings)
    warnings += same_variant_warnings(comparisons)
    known = {cost.variant: cost for cost in costs_at_rate(data, variants, warnings)}
    comparisons = [
        with_costs(_with_clear_one(comparison, comparisons, decide_on), known)
        for comparison in comparisons
    ]
    deciding = decisive(comparisons, decide_on)
    apart = judge_endpoints(valid_for(data, JUDGED_BY))
    return Judgement(
        verdict=min(
            (comparison.verdict for comparison in deciding),
            key=WEIGHT.index,
            default=Verdict.INCOMPLETE,
        ),
        headline=headline(deciding),
        metrics=[rule.metric for rule in metrics],
        variants=variants,
        comparisons=comparisons,
        warnings=warnings,
        variance=variance_splits(
            valid_for(data, decide_on), list(experiment.variants), METRICS[decide_on]
        ),
        excluded=excluded,
        looks=list(data.looks),
        facts=[_facts(data, variant) for variant in experiment.variants] if data.rounds else [],
        endpoints=[_endpoint_unless_invalid(judgement, warnings) for judgement in apart],
        explanations=list(explanations(data, comparisons)),
        waiting=list(waiting(data)),
        saturation=saturation(valid_for(data, CAPACITY)),
        costs=list(known.values()),
        at_rest=costs_at_rest(data),
        overloads=list(overloads(data)),
        stop_reason=data.stop.reason if data.stop else None,
        stopped_because=data.stop.why if data.stop else None,
        rounds=len(data.rounds),
    )


def _with_all_slots(
    data: PointData, excluded: Sequence[ExcludedSlot], rule: MetricRule
) -> list[Comparison]:
    """Compare with the slots that had only interference kept in; empty where there are none."""
    broken = [slot for slot in excluded if not only_interference(slot)]
    counting, all_of_them = (without_slots(data, out, rule.name) for out in (excluded, broken))
    if len(counting.slots) == len(all_of_them.slots):
        return []
    return compare_with_baseline(all_of_them, rule)


def _flips(compared: Sequence[Comparison], kept: Sequence[Comparison]) -> list[ValidityWarning]:
    """Report verdicts that hang on the slots that were excluded: that choice may mislead."""
    whole = {comparison.a: comparison for comparison in kept}
    return [
        ValidityWarning(
            rule="exclusion-matters",
            severity="note",
            variant=comparison.a,
            what=f"with the slots that had interference kept in, {comparison.a} against "
            f"{comparison.b} would be {whole[comparison.a].sampling_verdict} instead of "
            f"{comparison.sampling_verdict}: the verdict on "
            f"{METRICS[comparison.metric].metric.label} hangs on what was excluded",
            fix="Run again at a quieter time.",
            metrics=[comparison.metric],
        )
        for comparison in compared
        if comparison.a in whole
        and whole[comparison.a].sampling_verdict is not comparison.sampling_verdict
    ]


def decisive(comparisons: Sequence[Comparison], decide_on: str) -> list[Comparison]:
    """Give the comparisons that the verdict and the headline are about."""
    deciding = [comparison for comparison in comparisons if comparison.metric == decide_on]
    return [_by_cpu_time(comparison, comparisons) for comparison in asked_about(deciding)]


def _by_cpu_time(comparison: Comparison, all_of_them: Sequence[Comparison]) -> Comparison:
    """Where client or load limited both variants, give the comparison by CPU time instead.

    It is what the client's speed doesn't enter; its reason says so. A search for the capacity has
    none, and more of it would show no more.
    """
    if not comparison.is_beyond_client:
        return comparison
    by = " and ".join(dict.fromkeys(f"{limit}-limited" for limit in comparison.limited_by.values()))
    both = f"both {comparison.a} and {comparison.b} were {by}"
    by_cpu = f"{both}, so that neither could show its throughput; judged by server CPU per request"
    beyond = f"{both}: each can take at least what was found"
    return next(
        (
            other.replace(reason=by_cpu)
            for other in all_of_them
            if (other.metric, other.a, other.b) == (CPU_TIME, comparison.a, comparison.b)
        ),
        comparison.replace(reason=beyond, more_rounds=None, more_minutes=None),
    )


def _with_clear_one(
    comparison: Comparison, all_of_them: Sequence[Comparison], decide_on: str
) -> Comparison:
    """Where the deciding metric leaves it inconclusive, add what another one says most surely.

    Noise mostly leaves CPU per request and counts alone. Each metric's interval holds by itself,
    at its own confidence. A difference says more than that there is none; memory and sizes say
    nothing of what a request takes.
    """
    inconclusive = comparison.verdict is Verdict.INCONCLUSIVE and comparison.ratio is not None
    if comparison.metric != decide_on or not inconclusive:
        return comparison
    clear = [
        other
        for other in all_of_them
        if (other.a, other.b) == (comparison.a, comparison.b)
        and (METRICS[other.metric].kind in WORK or METRICS[other.metric].needs == "databases")
        and METRICS[other.metric].decides
        and other.verdict in CLEAR
    ]
    surest = min(clear, key=lambda other: CLEAR.index(other.verdict), default=None)
    if surest is None or surest.decisive is None:
        return comparison
    fact = ClearFact(metric=surest.metric, verdict=surest.verdict, ratio=surest.decisive)
    return comparison.replace(clear=fact)


def ratios_so_far(data: PointData) -> list[Comparison]:
    """Compare on the deciding metric alone: what to show while a run goes on, at little cost.

    Broken slots are excluded as in the judgement; whether there are too many of them isn't asked.
    """
    rule = METRICS[data.measure.decide_on]
    return compare_with_baseline(valid_for(data, rule.name), rule)


def judge_deciding_metric(data: PointData, warnings: Sequence[ValidityWarning]) -> list[Comparison]:
    """Compare on the deciding metric alone, with the verdicts that the whole judgement has.

    For who asks that of many runs: it takes a fraction of the time. A ranking's variants are
    compared with the experiment's baseline.
    """
    return _with_warnings(ratios_so_far(data), warnings)


def _with_warnings(
    compared: Sequence[Comparison], warnings: Sequence[ValidityWarning]
) -> list[Comparison]:
    judged = [_unless_invalid(comparison, warnings) for comparison in compared]
    return [_with_reason(comparison, warnings) for comparison in judged]


def _unless_invalid(comparison: Comparison, warnings: Sequence[ValidityWarning]) -> Comparison:
    """Withdraw the verdict when a warning invalidates its metric in either variant."""
    for warning in warnings:
        if warning.invalidates(comparison.metric, (comparison.a, comparison.b)):
            return comparison.replace(
                verdict=Verdict.INVALID,
                because="invalidated",
                negligible=False,
                why=f"{upper_first(warning.what)}.",
                more_rounds=None,
                more_minutes=None,
            )
    return comparison


def _endpoint_unless_invalid(
    judged: EndpointJudgement, warnings: Sequence[ValidityWarning]
) -> EndpointJudgement:
    compared = [_unless_invalid(comparison, warnings) for comparison in judged.comparisons]
    return judged.replace(comparisons=compared)


def _with_reason(comparison: Comparison, warnings: Sequence[ValidityWarning]) -> Comparison:
    """Say what held both variants back alike, where that is known."""
    reason = both_filled_link(comparison, warnings)
    if reason is None:
        return comparison
    why = f"{comparison.why} {upper_first(reason)}."
    return comparison.replace(why=why, reason=reason)


def _facts(data: PointData, variant: str) -> VariantFacts:
    ready_s = [
        this_round.record.ready_s[variant]
        for this_round in data.rounds
        if variant in this_round.record.ready_s
    ]
    hits: dict[str, int] = {}
    counts: dict[str, int] = {}
    for slot in data.of_variant(variant):
        for role, status in (slot.readings.status if slot.readings else {}).items():
            if status.hits is not None and status.misses is not None:
                hits[role] = hits.get(role, 0) + status.hits
                counts[role] = counts.get(role, 0) + status.hits + status.misses
    return VariantFacts(
        variant=variant,
        ready_s=median(ready_s) if ready_s else None,
        hit_share={role: hits[role] / total for role, total in counts.items() if total},
    )
