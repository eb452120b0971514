"""Variants against the baseline on one metric: ratio, interval, verdict, what is still needed."""

from collections.abc import Sequence
from math import exp, expm1, log, log1p

import numpy as np

from webdyno.comparison.bias import Evidence, evidence_of
from webdyno.core.base import Interval
from webdyno.core.format import listed, times
from webdyno.core.judgement import (
    Comparison,
    Metric,
    OneSidedAnswer,
    QuantileRange,
    ValidityWarning,
    VariantValue,
    Verdict,
)
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS, THROUGHPUT, MetricRule
from webdyno.core.question import OneSidedClaim
from webdyno.evidence.log_ratios import (
    later_words,
    log_ratios,
    pair_of,
    ratio_widened_by_resolution,
    shift,
    widened_by,
    widened_by_later,
    widened_by_resolution,
)
from webdyno.evidence.noise import Values, apart_alone, by_own_cpu, judged_values
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.statistics.bounds import Bound, tipping, with_bound
from webdyno.statistics.interval import (
    LARGEST_LOG,
    Estimate,
    Logs,
    estimate,
    quantile_interval,
    sign_flip_p,
)
from webdyno.statistics.verdict import (
    VerdictRule,
    answer,
    answer_within,
    ask_within,
    different,
    more_rounds_needed,
    one_sided_of,
    ruled_out,
    ruled_out_difference,
)

ALPHA = 0.05
DELTA = 0.02
SEQUENTIAL_FACTOR = 1.08
"""Widening of intervals that are narrow enough to stop at. A run that stops when its interval looks
narrow stops rather too early; without this, 95% intervals cover the truth in 92.5% of runs at the
worst noise (docs/validation/method.md, "Stop rule")."""
RELATIVE_PRECISION = 1 / 8
"""Share of a difference (ln) that its interval may span to each side: 3.4 to 4.8 around 4.0."""
KNOWN_TO, KNOWN_TO_SHARE = 0.025, 0.25
"""To how much, or what share of the difference (ln), a ratio has to be known, lest a run takes
longer than its budget: equal variants are then known to differ by 5% at most."""
LARGE = log(1.5)
"""A difference (ln) from which on a ratio that is known to such a share can be known promptly."""
MOST_EXCLUDED = 0.05
"""An inconclusive comparison shows something where it excludes larger differences than this."""
FEWEST_OF_COUNTS = 2
"""Rounds in which statements are counted: no test has to confirm them."""
WORTH_REPORTING_APART = 0.005
"""By so much (ln) a ratio may be another one on a machine alone for that to be shown."""
WITHOUT_DIFFERENCE = {Verdict.INCONCLUSIVE, Verdict.EQUIVALENT}
WORTH_EXCLUDING = 1.0
"""Differences, as a share, beyond which nobody asks whether they are excluded."""


def compare_with_baseline(data: PointData, rule: MetricRule) -> list[Comparison]:
    """Compare all variants with the baseline, in their order, by valid slots.

    A variant that is defined like the baseline (A/A) shows how far apart equals come out here.
    Where some are such doubles and some aren't, the doubles set delta for the others: max(2%,
    half-width of the A/A interval), or the farther end of an interval that excludes 1. Doubles
    aren't among the comparisons that Holm's correction is for.
    """
    baseline, *others = data.experiment.variants
    definitions = data.experiment.variants
    doubles = [name for name in others if definitions[name] == definitions[baseline]]
    singles = [name for name in others if name not in doubles]
    same = compare_variants(data, [baseline, *doubles], rule, data.measure)
    delta = max([DELTA, *map(_noise, same)])
    comparisons = compare_variants(data, [baseline, *singles], rule, data.measure, delta=delta)
    comparisons += [comparison.replace(same_variant=True) for comparison in same]
    return sorted(comparisons, key=lambda comparison: others.index(comparison.a))


@compute_once
def compare_as_asked(data: PointData) -> list[Comparison]:
    """Compare on the deciding metric what was asked about, by valid slots."""
    return asked_about(compare_with_baseline(data, METRICS[data.measure.decide_on]))


def asked_about(compared: Sequence[Comparison]) -> list[Comparison]:
    """Exclude A/A variants, which aren't the question but show the noise; unless all are."""
    return [comparison for comparison in compared if not comparison.same_variant] or list(compared)


def same_variant_warnings(compared: Sequence[Comparison]) -> list[ValidityWarning]:
    """Note doubles that came out different although other variants were asked about."""
    if all(comparison.same_variant for comparison in compared):
        return []
    different: dict[tuple[str, str], list[Comparison]] = {}
    for same in compared:
        if same.same_variant and same.verdict in {Verdict.FASTER, Verdict.SLOWER}:
            different.setdefault((same.a, same.b), []).append(same)
    return [
        ValidityWarning(
            rule="same-variant",
            severity="note",
            variant=copy,
            what=f"variant {copy} is defined like {original}, but differs from it: "
            f"{listed(map(_short_ratio, same))}. Smaller differences mean nothing in this run",
            fix="Look for what changes from one start to the next.",
            metrics=[comparison.metric for comparison in same],
        )
        for (copy, original), same in different.items()
    ]


def _short_ratio(comparison: Comparison) -> str:
    label = METRICS[comparison.metric].metric.label
    return f"{label} {times(comparison.ratio)}" if comparison.ratio else ""


def _noise(comparison: Comparison) -> float:
    """How far from 1 equals may come out, as a share; 0 while that isn't known."""
    ratio = comparison.ratio
    if ratio is None:
        return 0.0
    low, centre, high = map(log, (ratio.low, ratio.estimate, ratio.high))
    return expm1(Estimate(low, centre, high, comparison.method).noise)


def compare_variants(
    data: PointData,
    variants: Sequence[str],
    rule: MetricRule,
    measure: Measure,
    *,
    delta: float = DELTA,
) -> list[Comparison]:
    """Compare every variant with the baseline."""
    baseline, *others = variants
    questions = [(variant, baseline, rule) for variant in others]
    return compare_family(data, questions, measure, delta=delta)


def compare_family(
    data: PointData,
    questions: Sequence[tuple[str, str, MetricRule]],
    measure: Measure,
    *,
    delta: float = DELTA,
    alpha: float = ALPHA,
) -> list[Comparison]:
    """Compare variants with others, each pair on a metric, so that all comparisons hold together.

    Holm's step-down: the clearest difference must hold at alpha / m, the next one at
    alpha / (m - 1) and so on; after the first that doesn't hold, the rest are asked at its level.
    """
    pairs = [pair_of(data, variant, other, rule) for variant, other, rule in questions]
    counts = [rule.needs == "databases" for *_, rule in questions]
    p = [
        0.0 if is_count else sign_flip_p(pair.d)
        for is_count, pair in zip(counts, pairs, strict=True)
    ]
    fewest = fewest_rounds(measure, max(len(pairs), 1), alpha)
    compared: dict[int, Comparison] = {}
    left, all_hold = len(pairs), True
    for index in sorted(range(len(pairs)), key=p.__getitem__):
        pair, (variant, baseline, rule) = pairs[index], questions[index]
        question = VerdictRule(
            better=rule.metric.better,
            delta=delta,
            alpha=alpha / left,
            fewest_rounds=FEWEST_OF_COUNTS if counts[index] else fewest,
            floor=floor_share(rule.metric, pair.a, pair.b),
            floor_text=floor_text(rule.metric),
        )
        shown = shown_estimate(pair.d, measure, 1 - question.alpha)[0] if len(pair.d) > 1 else None
        shown = shown and widened_by_later(shown, data, variant, baseline, rule)
        shown = shown and ratio_widened_by_resolution(shown, data, variant, baseline, rule)
        evidence = evidence_of(data, variant, baseline, rule)
        wide = shown and with_bound(shown, evidence.together)
        biased = evidence.has_bias and not counts[index]
        wide_p = sign_flip_p(evidence.against(pair.d)) if biased else p[index]
        all_hold = all_hold and different(wide, wide_p, question)
        if all_hold and left > 1:
            left -= 1
        ruling = answer(shown, p[index], len(pair.d), question)
        sampling_verdict = ruling.verdict
        tipping_point = tipping(shown, evidence.together, question.limit) if shown else None
        if shown and wide and tipping_point and evidence.has_bias:
            n = len(pair.d)
            needed = more_rounds_needed(shown, n, question, evidence.together)
            ruling = answer_within(ruling, answer(wide, wide_p, n, question), tipping_point, needed)
        worst_case = wide.ratio(1 - question.alpha) if wide else None
        compared[index] = Comparison(
            metric=rule.name,
            a=variant,
            b=baseline,
            ratio=shown.ratio(1 - question.alpha) if shown else None,
            by_round=np.exp(pair.d).tolist(),
            rounds=pair.rounds,
            sign_flip_p=p[index] if len(pair.d) and not counts[index] else None,
            method=shown.method if shown else "t",
            delta=question.delta,
            negligible=ruling.negligible,
            verdict=ruling.verdict,
            because=ruling.because,
            why=ruling.why,
            worst_case=worst_case if evidence.has_bias else None,
            alone=alone(data, variant, baseline, rule, wide, 1 - question.alpha) if wide else None,
            biases=evidence.biases,
            tipping=tipping_point if evidence.has_bias else None,
            sampling_verdict=sampling_verdict,
            rules_out=rules_out(worst_case) if ruling.verdict in WITHOUT_DIFFERENCE else None,
            one_sided=one_sided(pair.d, evidence, data.experiment.asks.one_sided, measure, rule),
            limited_by=evidence.limited_by,
            later=later_words(data, variant, baseline, rule),
            more_rounds=ruling.more_rounds,
            more_minutes=ruling.more_rounds and ruling.more_rounds * data.round_s / 60,
        )
    return [compared[index] for index in range(len(questions))]


def alone(
    data: PointData,
    variant: str,
    baseline: str,
    rule: MetricRule,
    here: Estimate,
    confidence: float,
) -> Interval | None:
    """Return the interval on a machine without others' work; None where it is the one found here.

    One of two busy programs may have got less of the CPUs, such as one process next to many
    threads: by their own CPU time that makes no difference.
    """
    apart = apart_alone(data, variant, baseline)
    if apart < WORTH_REPORTING_APART:
        return None
    own = by_own_cpu(data) if rule.name == THROUGHPUT else None
    low, high = here.low, here.high
    if own is not None:
        (pair,) = log_ratios({name: own.values[name] for name in (baseline, variant)})
        if len(pair.d) > 1:
            by_cpu = estimate(pair.d, confidence)
            low, high = min(low, by_cpu.low), max(high, by_cpu.high)
    both = Estimate(low, here.centre, high, here.method)
    return with_bound(both, Bound("others", down=apart, up=apart)).ratio(confidence)


def one_sided(
    d: Logs, evidence: Evidence, claim: OneSidedClaim | None, measure: Measure, rule: MetricRule
) -> OneSidedAnswer | None:
    """Answer whether a claim holds, where the experiment makes one of this metric."""
    if claim is None or rule.name != measure.decide_on:
        return None
    return ask_within(d, evidence.together, one_sided_of(claim, measure, rule.metric.better))


def rules_out(worst_case: Interval | None) -> str | None:
    """Describe how large a difference there can't be; None where that is no news."""
    if worst_case is None or ruled_out_difference(worst_case) > WORTH_EXCLUDING:
        return None
    return ruled_out(worst_case)


def shows_enough(comparison: Comparison, *, worst_case: bool = True) -> bool:
    """Whether there is a verdict, or differences of more than 5% are excluded, by either CI."""
    verdict = comparison.verdict if worst_case else comparison.sampling_verdict
    interval = comparison.decisive if worst_case else comparison.ratio
    if verdict is Verdict.INCONCLUSIVE:
        return interval is not None and ruled_out_difference(interval) <= MOST_EXCLUDED
    return verdict not in {None, Verdict.INVALID, Verdict.INCOMPLETE}


def fewest_rounds(measure: Measure, comparisons: int, alpha: float = ALPHA) -> int:
    """Return how many rounds a verdict needs: the exact test must be able to confirm it.

    n rounds reach p = 2^(1-n) at best; Holm's first step requires alpha / comparisons.
    """
    able = 1
    while 2.0 ** (1 - able) > alpha / comparisons:
        able += 1
    return max(measure.min_rounds, able)


def shown_estimate(d: Logs, measure: Measure, confidence: float) -> tuple[Estimate, bool]:
    """Return the estimate, wider where a run may stop for its width, and whether it may."""
    raw = estimate(d, confidence)
    wide = raw.widen(SEQUENTIAL_FACTOR) if len(d) > measure.min_rounds else raw
    precise = wide.half_width <= wanted_half_width(wide.centre, measure)
    return (wide if precise or _is_known(wide) else raw), precise


def wanted_half_width(centre: float, measure: Measure) -> float:
    """Return how narrow (ln) an interval around that ratio (ln) has to be for a run to stop."""
    return max(log1p(measure.precision), RELATIVE_PRECISION * abs(centre))


def too_noisy(d: Logs, confidence: float) -> bool:
    """Whether a ratio is known neither to 2.5% nor to a quarter of the difference."""
    return not _is_known(estimate(d, confidence).widen(SEQUENTIAL_FACTOR))


def is_large_and_known(d: Logs, confidence: float) -> bool:
    """Whether a difference is beyond 1.5× and its ratio known to a quarter of it."""
    return abs(estimate(d, confidence).centre) >= LARGE and not too_noisy(d, confidence)


def _is_known(ratio: Estimate) -> bool:
    return ratio.half_width <= max(log1p(KNOWN_TO), KNOWN_TO_SHARE * abs(ratio.centre))


def variant_value(data: PointData, variant: str, rule: MetricRule) -> VariantValue:
    """Return a variant's own values, with the interval of their geometric mean over rounds."""
    later = shift(data, variant, rule)
    values = {
        n: value * exp(later.centre) for n, value in judged_values(data, variant, rule).items()
    }
    logs = np.log(list(values.values()))
    interval = estimate(logs, 1 - ALPHA) if len(logs) > 1 else None
    if interval:
        interval = widened_by(interval, later)
        interval = widened_by_resolution(interval, data, variant, rule)
    within_rounds = list[QuantileRange]()
    if quantile := rule.quantile:
        for times in data.times(variant, rule.times_of).values():
            if interval_within := quantile_interval(times, quantile):
                ends = QuantileRange(low=interval_within.low, high=interval_within.high)
                within_rounds.append(ends)
    return VariantValue(
        variant=variant,
        metric=rule.name,
        by_round=list(values.values()),
        rounds=list(values),
        interval=interval.ratio(1 - ALPHA) if interval else None,
        within_rounds=within_rounds,
    )


def invert(comparison: Comparison) -> Comparison:
    return comparison.replace(
        ratio=comparison.ratio and comparison.ratio.inverse(),
        worst_case=comparison.worst_case and comparison.worst_case.inverse(),
        by_round=[1 / value for value in comparison.by_round],
    )


def floor_share(metric: Metric, a: Values, b: Values) -> float:
    """Return the metric's floor as a share of the smaller of two variants' usual values; 0 if none.

    Two values differ by less than the floor where the larger is less than 1 + share times the
    smaller one.
    """
    if not metric.floor or not a or not b:
        return 0.0
    smaller = min(float(np.log(list(values.values())).mean()) for values in (a, b))
    return metric.floor / exp(max(smaller, -LARGEST_LOG))


def floor_text(metric: Metric) -> str:
    """Describe what the metric's floor is: `0.5 MiB`, `0.05 context switches per request`."""
    return f"{metric.floor:g} {metric.unit or metric.label}"
