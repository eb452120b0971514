"""The points of an experiment with factors: where its variants are compared."""

from functools import lru_cache
from itertools import product
from math import prod

from webdyno.core.base import Model
from webdyno.core.experiment import Experiment, Level
from webdyno.core.format import levels_text
from webdyno.core.judgement import Judgement
from webdyno.core.text import Prose
from webdyno.core.variant import key_parts, with_key


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
    """Give every combination of levels once, the last factor changing fastest.

    An experiment without factors is a single point. Raise pydantic's ValidationError for a level
    that the setting can't have.
    """
    combinations = list(product(*experiment.factors.values()))
    return tuple(
        _plan(
            experiment,
            Point(number=number, levels=dict(zip(experiment.factors, levels, strict=True))),
            len(combinations),
        )
        for number, levels in enumerate(combinations)
    )


def only_at(experiment: Experiment, point: Point) -> Experiment:
    """Give an experiment that is about one of its points alone, with that one's share of time."""
    share_s = experiment.measure.budget_s / prod(map(len, experiment.factors.values()))
    levels = {key: [level] for key, level in point.levels.items()}
    return experiment.replace(factors=levels).with_measure(budget_s=share_s)


def _plan(experiment: Experiment, point: Point, points: int) -> PointPlan:
    settings = experiment.model_dump(exclude={"factors"}, exclude_unset=True)
    for key, level in point.levels.items():
        settings = with_key(settings, key_parts(key), level)
    alone = Experiment.model_validate(settings)
    share_s = alone.measure.budget_s / points
    asks = alone.asks.at_one_of(points)
    planned = alone.replace(asks=asks).with_measure(budget_s=share_s)
    return PointPlan(point=point, experiment=planned)
