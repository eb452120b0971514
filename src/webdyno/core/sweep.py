"""Answers next to each other: at the points of an experiment with factors, and of several runs."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Literal

from webdyno.core.base import Interval, Model
from webdyno.core.experiment import Experiment, Level
from webdyno.core.format import levels_text
from webdyno.core.judgement import Judgement, Rank, Verdict
from webdyno.core.text import Prose
from webdyno.core.variant import key_parts, opened_at, with_key


class Point(Model):
    """One combination of levels."""

    number: int
    """Position in the sweep, from 0."""
    levels: dict[str, Level]
    """By factor."""

    @property
    def label(self) -> str:
        """`connections = 64, keepalive = always`."""
        return levels_text(self.levels)


class PointPlan(Model):
    """A point with the experiment as it is there."""

    point: Point
    experiment: Experiment


class PointJudgement(Model):
    """The answer at one point."""

    point: Point
    judgement: Judgement


class SweepJudgement(Model):
    """The answers at all points, and what they say together."""

    sentences: list[Prose]
    """The answer for each variant but the baseline, in their order."""
    points: list[PointJudgement]

    @property
    def headline(self) -> str:
        return "; ".join(self.sentences)


# Whoever prepares, measures or judges a run asks for them.
@lru_cache(maxsize=8)
def plan_points(experiment: Experiment) -> tuple[PointPlan, ...]:
    """Return every combination of levels once, the last factor changing fastest.

    An experiment without factors is a single point. Raise pydantic's ValidationError for a level
    that the setting can't have.
    """
    combinations = list(product(*experiment.factors.values()))
    keys = list(map(key_parts, experiment.factors))
    given = _opened(experiment, keys)
    plans = []
    for number, combination in enumerate(combinations):
        levels = dict(zip(experiment.factors, combination, strict=True))
        settings = given
        for key, level in zip(keys, combination, strict=True):
            settings = with_key(settings, key, level)
        alone = Experiment.model_validate(settings)
        share_s = alone.measure.budget_s / len(combinations)
        asks = alone.asks.at_one_of(len(combinations))
        shared = {name: its for name, its in given.items() if settings[name] is its}
        planned = alone.replace(**shared | {"asks": asks}).with_measure(budget_s=share_s)
        plans.append(PointPlan(point=Point(number=number, levels=levels), experiment=planned))
    return tuple(plans)


def _opened(experiment: Experiment, keys: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return an experiment's data: tables where keys lead, else what all points share as it is."""
    settings = opened_at(experiment, ())
    settings.pop("factors", None)
    asks = experiment.asks
    if asks.key in {key[0] for key in keys}:
        settings[asks.key] = settings.pop("asks", asks)
    for key in keys:
        settings = opened_at(settings, key)
    return settings


def only_at(experiment: Experiment, point: Point) -> Experiment:
    """Return an experiment that is about one of its points alone, with that one's share of time."""
    share_s = experiment.measure.budget_s / prod(map(len, experiment.factors.values()))
    levels = {key: [level] for key, level in point.levels.items()}
    return experiment.replace(factors=levels).with_measure(budget_s=share_s)


class Difference(Model):
    """Something about two runs that isn't equal."""

    what: str
    """Dotted name, such as `machine.kernel` or `versions.nginx.nginx`."""
    before: str
    after: str


ChangeBecause = Literal["few-rounds", "interval", "taken-by-others", "invalidated"]
"""What the verdict on a change rests on: too few rounds in one of the runs, the change's CI, CPU
time of the servers that others took, or a broken rule of validity in one of the runs."""


class Change(Model):
    """One metric after, divided by the same before."""

    metric: str
    subject: str
    """A variant, or `variant / baseline` for the ratio of two variants."""
    of: Literal["variant", "ratio"]
    """Ratios between variants don't change when only the machine did."""
    change: Interval | None
    """None when a run has fewer than two rounds of it."""
    delta: float
    """Changes within 1/(1 + delta) to 1 + delta count as equivalent."""
    verdict: Verdict
    because: ChangeBecause
    """What the verdict rests on."""
    why: Prose
    """The same in words, with figures."""


class RankChange(Model):
    """Where a variant stands in two rankings."""

    variant: str
    before: Rank
    after: Rank


class Swap(Model):
    """Two variants whose order both rankings are sure of, and which changed."""

    ahead: str
    """The one that was better before."""
    behind: str
    before: Interval | None
    """`ahead` divided by `behind`, on the deciding metric."""
    after: Interval | None


class RankChanges(Model):
    """Two rankings, pair by pair."""

    ranks: list[RankChange]
    """Of variants that have a rank in both, in the earlier order."""
    same: int
    """Pairs whose order both are sure of, and agree on."""
    open: int
    """Pairs whose order one of them at least isn't sure of."""
    swaps: list[Swap]


class RunComparison(Model):
    """The second run judged against the first."""

    verdict: Verdict
    """On the deciding metric over all variants: `slower` as soon as any variant is."""
    headline: Prose
    changes: list[Change]
    differences: list[Difference]
    """Of machine, versions and load generator: what else may have caused a change."""
    mismatches: list[Difference]
    """Of the experiments themselves: with any there is no verdict."""
    rank_changes: RankChanges | None = None
    """Where both are rankings of one experiment."""


class PointComparison(Model):
    """What changed at one point of a sweep."""

    levels: dict[str, Level]
    """By factor; empty in an experiment without factors."""
    comparison: RunComparison


class SweepComparison(Model):
    """Two runs compared at every point that both have."""

    verdict: Verdict
    """The worst of all points; `invalid` when there are none."""
    points: list[PointComparison]
    excluded: list[dict[str, Level]]
    """Points that only one of the runs has."""
