"""Starts that differ: a server that is steady within each start, and another one in the next.

Memory layout, huge pages, a hash seed or a just-in-time compiler may be drawn once at each start.
Where that decides, longer slots tell nothing more, and more starts do.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from webdyno.judge.interval import Logs
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.format import number, percent
from webdyno.model.judgement import Finding
from webdyno.model.metrics import CPU_TIME, MetricRule, metric_rule

FEWEST_STARTS = 6
SMALLEST = 0.015
"""Differences between starts (standard deviation of ln) that are worth a word."""
BEYOND_SLOTS = 4.0
"""Times the scatter of slots, so much starts have to scatter."""
GAP_SDS = 6.0
"""Between two states, in standard deviations within them: a normal sample seldom has such a gap."""


class Starts(NamedTuple):
    """How an arm's starts differ."""

    between: float
    """Standard deviation of ln(value) between starts; and `within` them, between slots."""
    within: float
    states: tuple[float, float] | None
    """Geometric means of two groups of starts; None where they don't fall apart into two."""


def starts_that_differ(data: PointData, arm: str, rule: MetricRule) -> Starts | None:
    """Give how an arm's starts differ; None where they don't, or there are too few to tell."""
    others = {slot.arm for slot in data.slots} - {arm}
    return how_starts_differ(
        data.slot_logs(arm, rule), [data.slot_logs(other, rule) for other in others]
    )


def how_starts_differ(
    of_arm: Mapping[int, Logs], of_others: Sequence[Mapping[int, Logs]]
) -> Starts | None:
    """Give the same from ln(value) of each slot of the arm, and of each of the others, by block.

    What weighs on all arms of a block alike is the machine's: the arm has to differ from start to
    start beside each of the others as well.
    """
    groups = {n: it for n, it in of_arm.items() if len(it) > 1}
    if len(groups) < FEWEST_STARTS:
        return None
    means = np.array([float(logs.mean()) for logs in groups.values()])
    within = float(np.sqrt(np.mean([float(logs.var(ddof=1)) for logs in groups.values()])))
    between = float(means.std(ddof=1))
    beside = min((_beside(groups, other) for other in of_others), default=0.0)
    if min(between, beside) < max(SMALLEST, BEYOND_SLOTS * within):
        return None
    return Starts(between, within, _two_states(means, within))


def _beside(groups: Mapping[int, Logs], other: Mapping[int, Logs]) -> float:
    """Give the scatter from start to start of an arm's value against another one's."""
    both = [float(groups[n].mean() - other[n].mean()) for n in groups if n in other]
    return float(np.std(both, ddof=1)) if len(both) >= FEWEST_STARTS else 0.0


def _two_states(means: Logs, within: float) -> tuple[float, float] | None:
    """Split starts at their largest gap, if both sides have two and are close to each other."""
    ordered = np.sort(means)
    at = int(np.argmax(np.diff(ordered))) + 1
    low, high = ordered[:at], ordered[at:]
    if min(len(low), len(high)) < 2:
        return None
    spread = max(float(low.std(ddof=1)), float(high.std(ddof=1)), within)
    if high[0] - low[-1] < GAP_SDS * spread:
        return None
    return exp(float(low.mean())), exp(float(high.mean()))


def arms_whose_starts_differ(data: PointData) -> Iterator[tuple[str, MetricRule, Starts]]:
    """Name them, by CPU time per request, which scatters least, or else by the deciding metric."""
    names = dict.fromkeys((CPU_TIME, data.measure.decide_on))
    for arm in data.experiment.arms:
        rules = map(metric_rule, names)
        seen = ((rule, starts_that_differ(data, arm, rule)) for rule in rules)
        if told := next(((rule, found) for rule, found in seen if found), None):
            yield arm, *told


def _starts(data: PointData) -> Iterator[Finding]:
    for arm, rule, found in arms_whose_starts_differ(data):
        yield note("starts-differ", arm, _words(found, rule), REMEDY)


def _words(found: Starts, rule: MetricRule) -> str:
    label = rule.metric.label
    within = f"within a start its {label} varies by {percent(found.within)}"
    if found.states is None:
        return f"its starts differ: {within}, from start to start by {percent(found.between)}"
    low, high = found.states
    return (
        f"each of its starts is in one of two states, 1.00 and {number(high / low, 2)} times the "
        f"{label}: {within}"
    )


REMEDY = (
    "More starts help, longer slots don't: give it more time. What is drawn at a start decides: "
    "memory layout, huge pages, a hash seed, a compiler. `webdyno why --profile` shows where."
)

RULES = (RunRule("starts-differ", _starts),)
