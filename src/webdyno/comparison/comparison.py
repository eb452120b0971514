"""Variants against the baseline on one metric: ratio, interval, verdict, what is still needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, log

import numpy as np

from webdyno.comparison.bias import Evidence, evidence_of
from webdyno.comparison.ratio import RatioCI, alone, ratio_ci
from webdyno.core.base import Interval
from webdyno.core.format import listed, times
from webdyno.core.judgement import (
    DIFFERENT,
    Comparison,
    Metric,
    OneSidedAnswer,
    QuantileRange,
    ValidityWarning,
    VariantValue,
    Verdict,
)
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.core.question import OneSidedClaim
from webdyno.evidence.log_ratios import (
    Pair,
    later_words,
    pair_of,
    shift,
    widened_by,
    widened_by_resolution,
)
from webdyno.evidence.noise import Values, judged_values
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.statistics.bounds import tipping
from webdyno.statistics.interval import (
    LARGEST_LOG,
    Estimate,
    Logs,
    estimate,
    quantile_interval,
    sign_flip_p,
)
from webdyno.statistics.verdict import (
    Ruling,
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
MOST_EXCLUDED = 0.05
"""An inconclusive comparison shows something where it excludes larger differences than this."""
FEWEST_OF_COUNTS = 2
"""Rounds in which statements are counted: no test has to confirm them."""
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
        if same.same_variant and same.verdict in DIFFERENT:
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
    """Compare variants with others, each pair on a metric, so that all verdicts hold together.

    Holm's step-down: the clearest difference must hold at alpha / m, the next one at
    alpha / (m - 1) and so on; after the first that doesn't hold, the rest are asked at its level.
    """
    asked = [_Asked.of(data, *question) for question in questions]
    fewest = fewest_rounds(measure, max(len(asked), 1), alpha)
    compared: dict[int, Comparison] = {}
    left, all_hold = len(asked), True
    for index in sorted(range(len(asked)), key=lambda index: asked[index].p):
        this = asked[index]
        verdict_rule = this.verdict_rule(delta, alpha / left, fewest)
        ci = ratio_ci(
            data,
            this.pair,
            this.baseline,
            this.rule,
            measure=measure,
            bound=this.evidence.together,
            confidence=1 - verdict_rule.alpha,
        )
        compared[index] = this.compared(ci, verdict_rule, measure)
        all_hold = all_hold and different(ci and ci.worst_case, this.worst_p, verdict_rule)
        if all_hold and left > 1:
            left -= 1
    return [compared[index] for index in range(len(questions))]


@dataclass(frozen=True)
class _Asked:
    """A variant and the one that it is compared with on a metric, with what was seen of them."""

    data: PointData
    baseline: str
    rule: MetricRule
    pair: Pair
    evidence: Evidence
    p: float
    """Of the exact test for "the ratio is 1"; 0 of counts, which no test has to confirm."""
    worst_p: float
    """The same in the worst case of interference."""

    @classmethod
    def of(cls, data: PointData, variant: str, baseline: str, rule: MetricRule) -> "_Asked":
        pair = pair_of(data, variant, baseline, rule)
        evidence = evidence_of(data, variant, baseline, rule)
        p = 0.0 if _is_count(rule) else sign_flip_p(pair.d)
        is_biased = evidence.has_bias and not _is_count(rule)
        worst_p = sign_flip_p(evidence.against(pair.d)) if is_biased else p
        return cls(data, baseline, rule, pair, evidence, p, worst_p)

    def verdict_rule(self, delta: float, alpha: float, fewest_rounds: int) -> VerdictRule:
        metric = self.rule.metric
        return VerdictRule(
            better=metric.better,
            delta=delta,
            alpha=alpha,
            fewest_rounds=FEWEST_OF_COUNTS if _is_count(self.rule) else fewest_rounds,
            floor=floor_share(metric, self.pair.a, self.pair.b),
            floor_text=floor_text(metric),
        )

    def compared(
        self, ci: RatioCI | None, verdict_rule: VerdictRule, measure: Measure
    ) -> Comparison:
        """Answer by these intervals."""
        data, pair, evidence = self.data, self.pair, self.evidence
        between = (data, pair.variant, self.baseline, self.rule)
        confidence = 1 - verdict_rule.alpha
        sampling = answer(ci and ci.sampling, self.p, len(pair.d), verdict_rule)
        tipping_point = tipping(ci.sampling, evidence.together, verdict_rule.limit) if ci else None
        ruling = sampling
        if ci and tipping_point and evidence.has_bias:
            ruling = self._answer_within(ci, sampling, tipping_point, verdict_rule)
        worst_case = ci and ci.worst_case.ratio(confidence)
        return Comparison(
            metric=self.rule.name,
            a=pair.variant,
            b=self.baseline,
            ratio=ci and ci.sampling.ratio(confidence),
            by_round=np.exp(pair.d).tolist(),
            rounds=pair.rounds,
            sign_flip_p=self.p if len(pair.d) and not _is_count(self.rule) else None,
            method=ci.sampling.method if ci else "t",
            delta=verdict_rule.delta,
            negligible=ruling.negligible,
            verdict=ruling.verdict,
            because=ruling.because,
            why=ruling.why,
            worst_case=worst_case if evidence.has_bias else None,
            alone=alone(*between, ci.worst_case, confidence) if ci else None,
            biases=evidence.biases,
            tipping=tipping_point if evidence.has_bias else None,
            sampling_verdict=sampling.verdict,
            rules_out=rules_out(worst_case) if ruling.verdict in WITHOUT_DIFFERENCE else None,
            one_sided=one_sided(
                pair.d, evidence, data.experiment.asks.one_sided, measure, self.rule
            ),
            limited_by=evidence.limited_by,
            later=later_words(*between),
            more_rounds=ruling.more_rounds,
            more_minutes=ruling.more_rounds and ruling.more_rounds * data.round_s / 60,
        )

    def _answer_within(
        self, ci: RatioCI, sampling: Ruling, tipping_point: str, verdict_rule: VerdictRule
    ) -> Ruling:
        n = len(self.pair.d)
        needed = more_rounds_needed(ci.sampling, n, verdict_rule, self.evidence.together)
        worst_case = answer(ci.worst_case, self.worst_p, n, verdict_rule)
        return answer_within(sampling, worst_case, tipping_point, needed)


def _is_count(rule: MetricRule) -> bool:
    return rule.needs == "databases"


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
    """Turn the ratio around, and all intervals of it."""
    ratio = comparison.ratio and comparison.ratio.inverse()
    worst_case = comparison.worst_case and comparison.worst_case.inverse()
    return comparison.replace(
        ratio=ratio,
        worst_case=worst_case,
        alone=comparison.alone and comparison.alone.inverse(),
        rules_out=comparison.rules_out and rules_out(worst_case or ratio),
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
