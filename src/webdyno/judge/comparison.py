"""Arms against the baseline on one metric: ratio, interval, verdict, what is still needed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, log

import numpy as np

from webdyno.judge.evidence import Evidence
from webdyno.judge.interval import Estimate, Logs, estimate, sign_flip_p
from webdyno.judge.metrics import MetricRule, values_by_block
from webdyno.judge.verdict import Question, answer, different
from webdyno.model.experiment import Measure
from webdyno.model.judgement import ArmValue, Comparison, Interval

ALPHA = 0.05
DELTA = 0.02
SEQUENTIAL_FACTOR = 1.08
"""Widening of intervals that are narrow enough to stop at. A run that stops when its interval looks
narrow stops rather too early than too late; without this, 95 % intervals cover the truth in 92.5 %
of runs at the worst noise (docs/method.md, "The stop rule")."""

Values = Mapping[int, float]
"""A metric of an arm by block number."""


@dataclass(frozen=True)
class LogRatios:
    """ln(arm / baseline) in each block in which both have a value."""

    arm: str
    blocks: list[int]
    d: Logs


def log_ratios(values: Mapping[str, Values]) -> list[LogRatios]:
    """Pair each arm with the baseline, which is the first one, block by block."""
    baseline, *others = values
    return [_pair(arm, values[arm], values[baseline]) for arm in others]


def _pair(arm: str, a: Values, b: Values) -> LogRatios:
    blocks = sorted(a.keys() & b.keys())
    return LogRatios(arm, blocks, np.array([log(a[n] / b[n]) for n in blocks]))


def fewest_blocks(measure: Measure, comparisons: int) -> int:
    """Give how many blocks a verdict needs: the exact test must be able to confirm it.

    n blocks reach p = 2^(1-n) at best; Holm's first step asks for 5 % / comparisons.
    """
    able = 1
    while 2.0 ** (1 - able) > ALPHA / comparisons:
        able += 1
    return max(measure.min_blocks, able)


def shown_estimate(d: Logs, measure: Measure, confidence: float) -> tuple[Estimate, bool]:
    """Give the estimate with the interval to show, and whether that is as narrow as asked for."""
    raw = estimate(d, confidence)
    wide = raw.widened(SEQUENTIAL_FACTOR) if len(d) > measure.min_blocks else raw
    precise = expm1(wide.half_width) <= measure.precision
    return (wide if precise else raw), precise


def compare_arms(
    evidence: Evidence,
    arms: Sequence[str],
    rule: MetricRule,
    measure: Measure,
    *,
    delta: float = DELTA,
) -> list[Comparison]:
    """Compare every arm with the first one. `evidence` holds valid slots only.

    Holm's step-down: the clearest difference must hold at 5 % / m, the next one at 5 % / (m - 1)
    and so on; after the first that doesn't hold, the rest are asked at its level.
    """
    pairs = log_ratios({arm: values_by_block(evidence, arm, rule) for arm in arms})
    p = {pair.arm: sign_flip_p(pair.d) for pair in pairs}
    compared: dict[str, Comparison] = {}
    left, all_hold = len(pairs), True
    for pair in sorted(pairs, key=lambda pair: p[pair.arm]):
        question = Question(
            better=rule.metric.better,
            delta=delta,
            alpha=ALPHA / left,
            fewest_blocks=fewest_blocks(measure, len(pairs)),
        )
        shown = shown_estimate(pair.d, measure, 1 - question.alpha)[0] if len(pair.d) > 1 else None
        all_hold = all_hold and different(shown, p[pair.arm], question)
        if all_hold and left > 1:
            left -= 1
        found = answer(shown, p[pair.arm], len(pair.d), question)
        compared[pair.arm] = Comparison(
            metric=rule.metric.name,
            a=pair.arm,
            b=arms[0],
            ratio=_interval(shown, 1 - question.alpha),
            by_block=np.exp(pair.d).tolist(),
            blocks=pair.blocks,
            sign_flip_p=p[pair.arm] if len(pair.d) else None,
            method=shown.method if shown else "t",
            delta=question.delta,
            verdict=found.verdict,
            why=found.why,
            more_blocks=found.more_blocks,
            more_minutes=found.more_blocks and found.more_blocks * evidence.block_s / 60,
        )
    return [compared[arm] for arm in arms[1:]]


def arm_values(evidence: Evidence, arms: Sequence[str], rule: MetricRule) -> list[ArmValue]:
    """Give each arm's own values, with the interval of their geometric mean over blocks."""
    return [_arm_value(values_by_block(evidence, arm, rule), arm, rule) for arm in arms]


def _arm_value(values: Values, arm: str, rule: MetricRule) -> ArmValue:
    logs = np.log(list(values.values()))
    return ArmValue(
        arm=arm,
        metric=rule.metric.name,
        by_block=list(values.values()),
        blocks=list(values),
        interval=_interval(estimate(logs, 1 - ALPHA), 1 - ALPHA) if len(logs) > 1 else None,
    )


def _interval(logs: Estimate | None, confidence: float) -> Interval | None:
    if logs is None:
        return None
    return Interval(
        low=exp(logs.low), estimate=exp(logs.centre), high=exp(logs.high), confidence=confidence
    )
