"""The rows behind the charts of a sweep."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import fmean, pstdev
from typing import Literal

from webdyno.model.experiment import Level
from webdyno.model.judgement import Interval
from webdyno.model.point import Point, SweepJudgement
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.chart_data import Rows
from webdyno.report.evidence import verdict_word

FEWEST_FOR_LOG = 4.0
"""How many times the smallest level the largest one is, at least, on a logarithmic axis."""


@dataclass(frozen=True)
class Axis:
    """The first factor, along which a sweep is drawn."""

    key: str
    title: str
    scale: Literal["log", "linear", "names"]
    numbers: list[float]
    """Its levels; empty where they are names."""
    names: list[str]
    """The levels as shown."""

    def place(self, point: Point) -> Level:
        """Give a point's place on the axis."""
        level = point.levels[self.key]
        return text.level(level) if self.scale == "names" else level


def sweep_axis(head: RunHead) -> Axis:
    """Give the axis that fits the first factor's levels."""
    key, levels = next(iter(head.experiment.factors.items()))
    title = text.factor_names(head.experiment.factors)[key]
    names = [text.level(level) for level in levels]
    numbers = [
        level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)
    ]
    if len(numbers) < len(levels):
        return Axis(key, title, "names", [], names)
    return Axis(key, title, "log" if in_powers(numbers) else "linear", numbers, names)


def in_powers(numbers: Sequence[float]) -> bool:
    """Whether numbers grow by factors rather than by steps."""
    ordered = sorted(set(numbers))
    if ordered[0] <= 0 or ordered[-1] < FEWEST_FOR_LOG * ordered[0]:
        return False
    steps = [after - before for before, after in pairwise(ordered)]
    factors = [log(after / before) for before, after in pairwise(ordered)]
    return _unevenness(factors) <= _unevenness(steps)


def _unevenness(gaps: Sequence[float]) -> float:
    return pstdev(gaps) / fmean(gaps)


def facet(point: Point) -> str:
    """Name the combination of all levels but the first; empty with a single factor."""
    names = text.factor_names(point.levels)
    _, *others = point.levels.items()
    return ", ".join(f"{names[key]} = {text.level(level)}" for key, level in others)


def value_rows(sweep: SweepJudgement, axis: Axis, metric: str) -> Rows:
    """Give a row per point and arm that has a value."""
    return [
        {
            "level": axis.place(at.point),
            "facet": facet(at.point),
            "arm": value.arm,
            "value": value.interval.estimate,
            "low": value.interval.low,
            "high": value.interval.high,
            "told": f"{text.estimate(value.interval)}  ({text.bounds(value.interval)})",
        }
        for at in sweep.points
        for value in at.judgement.arms
        if value.metric == metric and value.interval
    ]


def ratio_rows(sweep: SweepJudgement, axis: Axis, metric: str) -> Rows:
    """Give a row per point and arm that has a ratio to the baseline."""
    return [
        {
            "level": axis.place(at.point),
            "facet": facet(at.point),
            "arm": found.a,
            "against": found.b,
            "value": found.ratio.estimate,
            "low": found.ratio.low,
            "high": found.ratio.high,
            "told": _told(found.ratio),
            "verdict": verdict_word(found.verdict, decides=True),
            "delta": found.delta,
        }
        for at in sweep.points
        for found in at.judgement.comparisons
        if found.metric == metric and found.ratio
    ]


def _told(ratio: Interval) -> str:
    return f"{text.ratio(ratio)}  ({text.ratio_bounds(ratio)})"
