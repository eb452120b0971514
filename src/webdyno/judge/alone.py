"""A search for the capacity of one arm: what it can take, with nothing to compare that with."""

from collections.abc import Sequence
from math import log1p
from typing import NamedTuple

import numpy as np

from webdyno.judge.comparison import ALPHA, SEQUENTIAL_FACTOR
from webdyno.judge.interval import estimate
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.capacity import client_was_the_limit
from webdyno.model.base import Interval
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, number, percent, quantity_bounds
from webdyno.model.judgement import ArmValue, Finding, Verdict
from webdyno.model.metrics import CAPACITY, metric_rule


class Alone(NamedTuple):
    """The answer about one arm."""

    verdict: Verdict
    sentence: str


def is_alone(experiment: Experiment) -> bool:
    """Whether an experiment has one arm only."""
    return len(experiment.arms) == 1


def answer_alone(data: PointData, arms: Sequence[ArmValue], findings: Sequence[Finding]) -> Alone:
    """Say what the only arm can take, or why that isn't known."""
    (arm,) = data.experiment.arms
    for finding in findings:
        if finding.spoils(CAPACITY, (arm, arm)):
            return Alone(Verdict.INVALID, f"No verdict: {finding.what}.")
    value = next(it for it in arms if it.metric == CAPACITY)
    if not value.by_block:
        return Alone(Verdict.INCOMPLETE, f"no block found a capacity of {arm}")
    blocks, least = count(len(value.by_block), "block"), data.measure.min_blocks
    known = _found(value.interval, value.by_block)
    if len(value.by_block) < least or value.interval is None:
        why = f"{blocks} so far, {least} are needed"
        return Alone(Verdict.UNDECIDED, f"{arm} can take {known}: {why}")
    at_least = "at least " if client_was_the_limit(data, arm) else ""
    limit = ", where the load generator was the limit" if at_least else ""
    return Alone(Verdict.MEASURED, f"{arm} can take {at_least}{known}, {blocks}{limit}")


def is_known(data: PointData) -> str | None:
    """Say how well the only arm's capacity is known, where that is well enough to stop."""
    (arm,) = data.experiment.arms
    values = list(data.values(arm, metric_rule(CAPACITY)).values())
    measure = data.measure
    if len(values) < max(measure.min_blocks, 2):
        return None
    # Its interval may have been waited for, as those of ratios are.
    found = estimate(np.log(values), 1 - ALPHA).widened(SEQUENTIAL_FACTOR)
    if found.half_width > log1p(measure.precision):
        return None
    return f"the capacity is known to ±{percent(measure.precision)}"


def _found(interval: Interval | None, by_block: Sequence[float]) -> str:
    if interval is None:
        return f"{number(by_block[0])} requests per second"
    around = quantity_bounds(interval)
    return f"{number(interval.estimate)} requests per second (95 % interval {around})"
