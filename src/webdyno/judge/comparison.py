"""Arms against the baseline on one metric: ratio, interval, verdict, what is still needed."""

from collections.abc import Sequence
from math import exp, expm1, log, log1p

import numpy as np

from webdyno.judge.bias import Evidence, evidence_of
from webdyno.judge.bounds import tipping, widened
from webdyno.judge.interval import LARGEST_LOG, Estimate, Logs, estimate, sign_flip_p
from webdyno.judge.log_ratios import (
    Values,
    later_words,
    pair_of,
    shift,
    widened_by,
    widened_by_later,
)
from webdyno.judge.one_sided import ask_within, one_sided_of, ruled_out, ruled_out_difference
from webdyno.judge.order_statistics import quantile_interval
from webdyno.judge.point_data import PointData, derived
from webdyno.judge.verdict import VerdictRule, answer, answer_within, different, more_blocks_needed
from webdyno.model.base import Interval
from webdyno.model.format import ratio, ratio_range
from webdyno.model.judgement import (
    ArmValue,
    Comparison,
    Metric,
    OneSidedAnswer,
    QuantileRange,
    ValidityWarning,
    Verdict,
)
from webdyno.model.measure import Measure
from webdyno.model.metrics import MetricRule, metric_rule

ALPHA = 0.05
DELTA = 0.02
SEQUENTIAL_FACTOR = 1.08
"""Widening of intervals that are narrow enough to stop at. A run that stops when its interval looks
narrow stops rather too early than too late; without this, 95% intervals cover the truth in 92.5%
of runs at the worst noise (docs/validation/method.md, "Stop rule")."""
RELATIVE_PRECISION = 1 / 8
"""Share of a difference (ln) up to which its interval needn't be any narrower: 4.0 is told well
enough by 3.4 to 4.8."""
KNOWN_TO, KNOWN_TO_SHARE = 0.025, 0.25
"""To how much, or what share of the difference (ln), a ratio has to be known at least, lest a run
takes longer than its budget: of equal arms one can then tell that they differ by 5% at most."""
LARGE = log(1.5)
"""A difference (ln) from which on a ratio that is known to such a share can be told promptly."""
MOST_EXCLUDED = 0.05
"""An inconclusive comparison answers something where it excludes larger differences than this."""
WITHOUT_DIFFERENCE = {Verdict.INCONCLUSIVE, Verdict.EQUIVALENT}
WORTH_EXCLUDING = 1.0
"""Differences, as a share, beyond which nobody asks whether they are excluded."""


def compare_with_baseline(data: PointData, rule: MetricRule) -> list[Comparison]:
    """Compare all arms with the first one, in their order. `measured` holds valid slots only.

    An arm that is defined like the baseline (A/A) shows how far apart equals come out here. Where
    some are such doubles and some aren't, the doubles set delta for the others: delta = max(2%,
    half-width of the A/A interval); where that interval excludes 1, its farther end. Doubles aren't
    counted among the comparisons that Holm's correction is for.
    """
    baseline, *others = data.experiment.arms
    doubles = [arm for arm in others if data.experiment.arms[arm] == data.experiment.arms[baseline]]
    asked = [arm for arm in others if arm not in doubles]
    if not doubles or not asked:
        compared = compare_arms(data, [baseline, *others], rule, data.measure)
        return [_marked(comparison, same_arm=bool(doubles)) for comparison in compared]
    same = compare_arms(data, [baseline, *doubles], rule, data.measure)
    delta = max(DELTA, *(_noise(comparison) for comparison in same))
    found = compare_arms(data, [baseline, *asked], rule, data.measure, delta=delta) + [
        _marked(comparison, same_arm=True) for comparison in same
    ]
    return sorted(found, key=lambda comparison: others.index(comparison.a))


@derived
def compare_as_asked(data: PointData) -> list[Comparison]:
    """Compare on the deciding metric what was asked about. `measured` holds valid slots only."""
    rule = metric_rule(data.measure.decide_on)
    return asked_about(compare_with_baseline(data, rule))


def asked_about(compared: Sequence[Comparison]) -> list[Comparison]:
    """Exclude A/A arms, which aren't the question but show the noise; unless all are."""
    return [comparison for comparison in compared if not comparison.same_arm] or list(compared)


def same_arm_warnings(compared: Sequence[Comparison]) -> list[ValidityWarning]:
    """Note doubles that came out different although other arms were asked about."""
    if all(comparison.same_arm for comparison in compared):
        return []
    return [
        ValidityWarning(
            rule="same-arm",
            severity="note",
            arm=comparison.a,
            what=f"arm {comparison.a} is defined like {comparison.b}, but their ratio came out as "
            f"{ratio(comparison.ratio)} ({ratio_range(comparison.ratio)})",
            fix="Smaller differences than that mean nothing in this run, and count as "
            "equivalent. Look for what changes from start to start, and run again.",
            metrics=[comparison.metric],
        )
        for comparison in compared
        if comparison.same_arm
        and comparison.ratio
        and comparison.verdict in {Verdict.FASTER, Verdict.SLOWER}
    ]


def _marked(comparison: Comparison, *, same_arm: bool) -> Comparison:
    return comparison.replace(same_arm=same_arm)


def _noise(comparison: Comparison) -> float:
    """How far from 1 equals may come out, as a share; 0 while that isn't known."""
    found = comparison.ratio
    if found is None:
        return 0.0
    low, centre, high = map(log, (found.low, found.estimate, found.high))
    return expm1(Estimate(low, centre, high, comparison.method).noise)


def compare_arms(
    data: PointData,
    arms: Sequence[str],
    rule: MetricRule,
    measure: Measure,
    *,
    delta: float = DELTA,
) -> list[Comparison]:
    """Compare every arm with the first one."""
    baseline, *others = arms
    asked = [(arm, baseline, rule) for arm in others]
    return compare_family(data, asked, measure, delta=delta)


def compare_family(
    data: PointData,
    asked: Sequence[tuple[str, str, MetricRule]],
    measure: Measure,
    *,
    delta: float = DELTA,
    alpha: float = ALPHA,
) -> list[Comparison]:
    """Compare arms with others, each pair on a metric, so that all comparisons hold together.

    Holm's step-down: the clearest difference must hold at alpha / m, the next one at
    alpha / (m - 1) and so on; after the first that doesn't hold, the rest are asked at its level.
    """
    pairs = [pair_of(data, arm, other, rule) for arm, other, rule in asked]
    p = [sign_flip_p(pair.d) for pair in pairs]
    compared: dict[int, Comparison] = {}
    left, all_hold = len(pairs), True
    for at in sorted(range(len(pairs)), key=p.__getitem__):
        pair, (arm, baseline, rule) = pairs[at], asked[at]
        question = VerdictRule(
            better=rule.metric.better,
            delta=delta,
            alpha=alpha / left,
            fewest_blocks=fewest_blocks(measure, len(pairs), alpha),
            floor=floor_share(rule.metric, pair.a, pair.b),
            floor_text=floor_text(rule.metric),
        )
        shown = shown_estimate(pair.d, measure, 1 - question.alpha)[0] if len(pair.d) > 1 else None
        shown = shown and widened_by_later(shown, data, arm, baseline, rule)
        evidence = evidence_of(data, arm, baseline, rule)
        wide = shown and widened(shown, evidence.together)
        wide_p = sign_flip_p(evidence.against(pair.d)) if evidence.biased else p[at]
        all_hold = all_hold and different(wide, wide_p, question)
        if all_hold and left > 1:
            left -= 1
        found = answer(shown, p[at], len(pair.d), question)
        as_measured = found.verdict
        said = tipping(shown, evidence.together, question.limit) if shown else None
        if shown and wide and said and evidence.biased:
            n = len(pair.d)
            needed = more_blocks_needed(shown, n, question, evidence.together)
            found = answer_within(found, answer(wide, wide_p, n, question), said, needed)
        bounded = wide.ratio(1 - question.alpha) if wide else None
        compared[at] = Comparison(
            metric=rule.name,
            a=arm,
            b=baseline,
            ratio=shown.ratio(1 - question.alpha) if shown else None,
            by_block=np.exp(pair.d).tolist(),
            blocks=pair.blocks,
            sign_flip_p=p[at] if len(pair.d) else None,
            method=shown.method if shown else "t",
            delta=question.delta,
            negligible=found.negligible,
            verdict=found.verdict,
            why=found.why,
            bounded=bounded if evidence.biased else None,
            biases=evidence.biases,
            tipping=said if evidence.biased else None,
            as_measured=as_measured,
            rules_out=rules_out(bounded) if found.verdict in WITHOUT_DIFFERENCE else None,
            one_sided=one_sided(pair.d, evidence, measure, rule),
            limited_by=evidence.limited_by,
            later=later_words(data, arm, baseline, rule),
            more_blocks=found.more_blocks,
            more_minutes=found.more_blocks and found.more_blocks * data.block_s / 60,
        )
    return [compared[at] for at in range(len(asked))]


def one_sided(
    d: Logs, evidence: Evidence, measure: Measure, rule: MetricRule
) -> OneSidedAnswer | None:
    """Answer the question in one direction, where the experiment asks it of this metric."""
    question = one_sided_of(measure, rule.metric.better)
    if question is None or rule.name != measure.decide_on:
        return None
    return ask_within(d, evidence.together, question)


def rules_out(bounded: Interval | None) -> str | None:
    """Say how large a difference there can't be; None where that is no news."""
    if bounded is None or ruled_out_difference(bounded) > WORTH_EXCLUDING:
        return None
    return ruled_out(bounded)


def tells_enough(comparison: Comparison, *, bounded: bool = True) -> bool:
    """Whether it says something: a verdict, or that differences of more than 5% are excluded.

    `bounded`: with all bounds of bias counted, as the verdict has them, or as measured.
    """
    verdict = comparison.verdict if bounded else comparison.as_measured
    interval = comparison.sure if bounded else comparison.ratio
    if verdict is Verdict.INCONCLUSIVE:
        return interval is not None and ruled_out_difference(interval) <= MOST_EXCLUDED
    return verdict not in {None, Verdict.INVALID, Verdict.INCOMPLETE}


def fewest_blocks(measure: Measure, comparisons: int, alpha: float = ALPHA) -> int:
    """Give how many blocks a verdict needs: the exact test must be able to confirm it.

    n blocks reach p = 2^(1-n) at best; Holm's first step asks for alpha / comparisons.
    """
    able = 1
    while 2.0 ** (1 - able) > alpha / comparisons:
        able += 1
    return max(measure.min_blocks, able)


def shown_estimate(d: Logs, measure: Measure, confidence: float) -> tuple[Estimate, bool]:
    """Give the estimate with the interval to show, and whether that is as narrow as asked for.

    It is widened where a run may have stopped for its width.
    """
    raw = estimate(d, confidence)
    wide = raw.widened(SEQUENTIAL_FACTOR) if len(d) > measure.min_blocks else raw
    precise = wide.half_width <= wanted_half_width(wide.centre, measure)
    return (wide if precise or _is_known(wide) else raw), precise


def wanted_half_width(centre: float, measure: Measure) -> float:
    """Give how narrow (ln) an interval around that ratio (ln) has to be for a run to stop."""
    return max(log1p(measure.precision), RELATIVE_PRECISION * abs(centre))


def too_noisy(d: Logs, confidence: float) -> bool:
    """Whether a ratio is known neither to 2.5% nor to a quarter of the difference."""
    return not _is_known(estimate(d, confidence).widened(SEQUENTIAL_FACTOR))


def is_large_and_known(d: Logs, confidence: float) -> bool:
    """Whether a difference is beyond 1.5× and its ratio known to a quarter of it."""
    return abs(estimate(d, confidence).centre) >= LARGE and not too_noisy(d, confidence)


def _is_known(found: Estimate) -> bool:
    return found.half_width <= max(log1p(KNOWN_TO), KNOWN_TO_SHARE * abs(found.centre))


def arm_value(data: PointData, arm: str, rule: MetricRule) -> ArmValue:
    """Give an arm's own values, with the interval of their geometric mean over blocks."""
    later = shift(data, arm, rule)
    values = {n: it * exp(later.centre) for n, it in data.values(arm, rule).items()}
    logs = np.log(list(values.values()))
    told = estimate(logs, 1 - ALPHA) if len(logs) > 1 else None
    return ArmValue(
        arm=arm,
        metric=rule.name,
        by_block=list(values.values()),
        blocks=list(values),
        interval=widened_by(told, later).ratio(1 - ALPHA) if told else None,
        within_blocks=_within_blocks(data, arm, rule.quantile) if rule.quantile else [],
    )


def _within_blocks(data: PointData, arm: str, quantile: float) -> list[QuantileRange]:
    found = (quantile_interval(times, quantile) for times in data.times(arm).values())
    return [QuantileRange(low=each.low, high=each.high) for each in found if each]


def inverted(comparison: Comparison) -> Comparison:
    """Give it with its ratios the other way round; the rest stays."""
    return comparison.replace(
        ratio=comparison.ratio and comparison.ratio.inverse(),
        bounded=comparison.bounded and comparison.bounded.inverse(),
        by_block=[1 / it for it in comparison.by_block],
    )


def floor_share(metric: Metric, a: Values, b: Values) -> float:
    """Give the metric's floor as a share of the smaller of two arms' typical values; 0 if none.

    Two values differ by less than the floor where the larger is less than 1 + share times the
    smaller one.
    """
    if not metric.floor or not a or not b:
        return 0.0
    smaller = min(float(np.log(list(values.values())).mean()) for values in (a, b))
    return metric.floor / exp(max(smaller, -LARGEST_LOG))


def floor_text(metric: Metric) -> str:
    """Say what the metric's floor is: `0.5 MiB`, `0.05 context switches per request`."""
    return f"{metric.floor:g} {metric.unit or metric.label}"
