"""The judgement of a point: comparisons on every metric and endpoint, warnings, one sentence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from webdyno.comparison.comparison import (
    asked_about,
    compare_family,
    compare_with_baseline,
    same_variant_warnings,
    variant_value,
)
from webdyno.comparison.saturation import overloads, saturation
from webdyno.comparison.sentences import headline
from webdyno.comparison.stop import variance_splits
from webdyno.comparison.time_spent import explanations
from webdyno.comparison.waiting import waiting
from webdyno.core.experiment import Experiment
from webdyno.core.format import upper_first
from webdyno.core.histogram import merge_encoded
from webdyno.core.judgement import (
    ClearFact,
    Comparison,
    EndpointFigures,
    EndpointJudgement,
    ExcludedSlot,
    Judgement,
    ValidityWarning,
    VariantFacts,
    VariantValue,
    Verdict,
)
from webdyno.core.load_result import EndpointResult
from webdyno.core.metrics import CAPACITY, CPU_TIME, METRICS, MetricRule, metrics_reported_by
from webdyno.core.records import SlotRecord
from webdyno.core.request import endpoints_of
from webdyno.evidence.cost import costs_at_rate, costs_at_rest, with_costs
from webdyno.evidence.point_data import PointData
from webdyno.validity import excluded_slots, only_interference, valid_for, without_slots
from webdyno.validity.connections import both_filled_link
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
"""In the order of how much they show."""
JUDGED_BY = "latency_p50_us"
"""In a closed loop the mix sets the endpoints' throughputs, and a server's CPU time isn't known by
endpoint: its own is how long it takes. The median needs the fewest answers."""


def judge_comparisons(data: PointData, broken: Sequence[ValidityWarning]) -> Judgement:
    """Compare each variant with the baseline on every metric; `broken` are rules of validity."""
    experiment = data.experiment
    decide_on = experiment.measure.decide_on
    warnings = list(broken)
    excluded = excluded_slots(data)
    variants, comparisons = list[VariantValue](), list[Comparison]()
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
    endpoints = [
        each.replace(comparisons=[_unless_invalid(one, warnings) for one in each.comparisons])
        for each in judge_endpoints(valid_for(data, JUDGED_BY))
    ]
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
        endpoints=endpoints,
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
    """Compare with slots that had only interference kept in; empty where there are none."""
    broken = [slot for slot in excluded if not only_interference(slot)]
    counting, all_of_them = (without_slots(data, out, rule.name) for out in (excluded, broken))
    if len(counting.slots) == len(all_of_them.slots):
        return []
    return compare_with_baseline(all_of_them, rule)


def _flips(compared: Sequence[Comparison], kept: Sequence[Comparison]) -> list[ValidityWarning]:
    """Report verdicts that hang on the slots that were excluded: that choice may mislead."""
    with_all = {comparison.a: comparison.sampling_verdict for comparison in kept}
    return [
        ValidityWarning(
            rule="exclusion-matters",
            severity="note",
            variant=comparison.a,
            what=f"with the slots that had interference kept in, {comparison.a} against "
            f"{comparison.b} would be {with_all[comparison.a]} instead of "
            f"{comparison.sampling_verdict}: the verdict on "
            f"{METRICS[comparison.metric].metric.label} hangs on what was excluded",
            fix="Run again at a quieter time.",
            metrics=[comparison.metric],
        )
        for comparison in compared
        if comparison.a in with_all and with_all[comparison.a] is not comparison.sampling_verdict
    ]


def decisive(comparisons: Sequence[Comparison], decide_on: str) -> list[Comparison]:
    """Return the comparisons that the verdict and the headline are about."""
    deciding = [comparison for comparison in comparisons if comparison.metric == decide_on]
    return [_by_cpu_time(comparison, comparisons) for comparison in asked_about(deciding)]


def _by_cpu_time(comparison: Comparison, all_of_them: Sequence[Comparison]) -> Comparison:
    """Where client or load limited both variants, return the comparison by CPU time instead.

    The client's speed doesn't enter that. A search for the capacity has none, and more of it would
    show no more.
    """
    if not comparison.is_beyond_client:
        return comparison
    by = " and ".join(dict.fromkeys(f"{limit}-limited" for limit in comparison.limited_by.values()))
    both = f"both {comparison.a} and {comparison.b} were {by}"
    by_cpu = f"{both}, so that neither could show its throughput; judged by CPU per request"
    beyond = f"{both}: each can take at least what was found"
    for other in all_of_them:
        if (other.metric, other.a, other.b) == (CPU_TIME, comparison.a, comparison.b):
            return other.replace(reason=by_cpu)
    return comparison.replace(reason=beyond, more_rounds=None, more_minutes=None)


def _with_clear_one(
    comparison: Comparison, all_of_them: Sequence[Comparison], decide_on: str
) -> Comparison:
    """Where the deciding metric is inconclusive, add what another one shows most surely.

    Noise mostly leaves CPU per request and counts alone. Each metric's interval holds by itself. A
    difference says more than that there is none; memory and sizes aren't what a request takes.
    """
    inconclusive = comparison.verdict is Verdict.INCONCLUSIVE and comparison.ratio is not None
    if comparison.metric != decide_on or not inconclusive:
        return comparison
    return comparison.replace(clear=surest_work(comparison, all_of_them))


def surest_work(comparison: Comparison, all_of_them: Sequence[Comparison]) -> ClearFact | None:
    """Return what is most certain of what a request of the same variants takes."""
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
        return None
    return ClearFact(metric=surest.metric, verdict=surest.verdict, ratio=surest.decisive)


def ratios_so_far(data: PointData) -> list[Comparison]:
    """Compare on the deciding metric alone, without broken slots, however many: at little cost."""
    rule = METRICS[data.measure.decide_on]
    return compare_with_baseline(valid_for(data, rule.name), rule)


def judge_deciding_metric(data: PointData, warnings: Sequence[ValidityWarning]) -> list[Comparison]:
    """Compare on the deciding metric alone, with the verdicts of the whole judgement."""
    return _with_warnings(ratios_so_far(data), warnings)


def _with_warnings(
    compared: Sequence[Comparison], warnings: Sequence[ValidityWarning]
) -> list[Comparison]:
    judged = []
    for each in compared:
        comparison = _unless_invalid(each, warnings)
        if reason := both_filled_link(comparison, warnings):
            why = f"{comparison.why} {upper_first(reason)}."
            comparison = comparison.replace(why=why, reason=reason)
        judged.append(comparison)
    return judged


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


def _facts(data: PointData, variant: str) -> VariantFacts:
    starts_s = (this_round.record.ready_s.get(variant) for this_round in data.rounds)
    ready_s = [start_s for start_s in starts_s if start_s is not None]
    hits, counts = Counter[str](), Counter[str]()
    for slot in data.of_variant(variant):
        for role, status in (slot.readings.status if slot.readings else {}).items():
            if status.hits is not None and status.misses is not None:
                hits[role] += status.hits
                counts[role] += status.hits + status.misses
    return VariantFacts(
        variant=variant,
        ready_s=median(ready_s) if ready_s else None,
        hit_share={role: hits[role] / total for role, total in counts.items() if total},
    )


def together(experiment: Experiment) -> int:
    """Count variants times requests; not a load's paths, which are too often many and alike."""
    endpoints = set(endpoints_of(experiment.selected_requests))
    return max(len(experiment.variants) - 1, 1) * max(len(endpoints), 1)


def judge_endpoints(data: PointData) -> list[EndpointJudgement]:
    """Compare the variants at each endpoint that was requested of all, by valid slots.

    All endpoints and variants are one family for Holm's correction: the chance that any of them
    comes out different without being so is 5%.
    """
    baseline, *others = data.experiment.variants
    requested = [
        dict.fromkeys(
            each.endpoint for slot in data.of_variant(name) for each in slot.load.endpoints
        )
        for name in data.experiment.variants
    ]
    names = [name for name in requested[0] if all(name in each for each in requested[1:])]
    rules = {name: _rule(name) for name in names}
    questions = [(variant, baseline, rules[name]) for name in names for variant in others]
    compared = compare_family(data, questions, data.measure)
    return [
        EndpointJudgement(
            endpoint=name,
            metric=rules[name].metric,
            figures=[_figures(data, variant, name) for variant in data.experiment.variants],
            variants=[
                variant_value(data, variant, rules[name]) for variant in data.experiment.variants
            ],
            comparisons=compared[index * len(others) : (index + 1) * len(others)],
        )
        for index, name in enumerate(names)
    ]


def _of(slots: Sequence[SlotRecord], name: str) -> list[EndpointResult]:
    return [
        endpoint for slot in slots for endpoint in slot.load.endpoints if endpoint.endpoint == name
    ]


def _rule(name: str) -> MetricRule:
    def round_value(slots: Sequence[SlotRecord]) -> float | None:
        times = merge_encoded(request.latency_us.histogram for request in _of(slots, name))
        return times.quantile(0.5)

    known = METRICS[JUDGED_BY]
    metric = known.metric.replace(label=f"median latency of {name}")
    return replace(known, metric=metric, round_value=round_value, quantile=None)


def _figures(data: PointData, variant: str, name: str) -> EndpointFigures:
    requests = _of(data.of_variant(variant), name)
    times = merge_encoded(request.latency_us.histogram for request in requests)
    completed = sum(request.completed for request in requests)
    counted_s = sum(
        request.completed / request.throughput_rps for request in requests if request.throughput_rps
    )
    return EndpointFigures(
        variant=variant,
        completed=completed,
        failed=sum(request.failed for request in requests),
        throughput_rps=completed / counted_s if counted_s else 0.0,
        p50_us=times.quantile(0.5),
        p99_us=times.quantile(0.99),
    )
