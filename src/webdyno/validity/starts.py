"""Whether a variant is the same after each start: `starts-differ`.

A server may be steady within each start, and another one in the next. Memory layout, huge pages, a
hash seed or a just-in-time compiler may be drawn once at each start. Where that decides, longer
slots say nothing more, and more starts do.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from webdyno.core.format import number, percent
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import CPU_TIME, METRICS, MetricRule
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import Logs
from webdyno.validity.rule import RunRule, note

FEWEST_STARTS = 6
SMALLEST = 0.015
"""Differences between starts (standard deviation of ln) that are worth a word."""
BEYOND_SLOTS = 4.0
"""Times the scatter of slots, so much starts have to scatter."""
GAP_SDS = 6.0
"""Between two states, in standard deviations within them: a normal sample seldom has such a gap."""


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


STARTS_DIFFER = RunRule("starts-differ", _starts)
