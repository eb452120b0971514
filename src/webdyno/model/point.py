"""The points of an experiment with factors: where its arms are compared."""

from itertools import product
from math import prod

from webdyno.model.base import Model
from webdyno.model.changes import key_parts, with_key
from webdyno.model.experiment import Experiment, Level
from webdyno.model.format import levels as levels_text
from webdyno.model.judgement import Judgement


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

    sentences: list[str]
    """The answer for each arm but the baseline, in their order."""
    points: list[PointJudgement]

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return "; ".join(self.sentences)


def plan_points(experiment: Experiment) -> list[PointPlan]:
    """Give every combination of levels once, the last factor changing fastest.

    An experiment without factors is a single point. Raise pydantic's ValidationError for a level
    that the setting can't have.
    """
    combinations = list(product(*experiment.factors.values()))
    return [
        _plan(
            experiment,
            Point(number=number, levels=dict(zip(experiment.factors, levels, strict=True))),
            len(combinations),
        )
        for number, levels in enumerate(combinations)
    ]


def only_at(experiment: Experiment, point: Point) -> Experiment:
    """Give an experiment that is about one of its points alone, with that one's share of time."""
    share_s = experiment.measure.budget_s / prod(map(len, experiment.factors.values()))
    levels = {key: [level] for key, level in point.levels.items()}
    return experiment.replace(factors=levels).with_measure(budget_s=share_s)


def _plan(experiment: Experiment, point: Point, points: int) -> PointPlan:
    settings = experiment.model_dump(exclude={"factors"}, exclude_unset=True)
    for key, level in point.levels.items():
        settings = with_key(settings, key_parts(key), level)
    there = Experiment.model_validate(settings)
    gate = there.gate and there.gate.replace(endpoints=points)
    share_s = there.measure.budget_s / points
    here = there.replace(gate=gate).with_measure(budget_s=share_s)
    return PointPlan(point=point, experiment=here)
