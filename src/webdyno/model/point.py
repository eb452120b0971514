"""Factors that an experiment varies, and the points at which its arms are compared."""

from itertools import product
from typing import Annotated

from pydantic import Field

from webdyno.model.base import Model
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Judgement
from webdyno.model.knob import KnobValue


class Factor(Model):
    """A setting that is varied."""

    key: str
    """Dotted, as for --set: `load.connections`, `arms.nginx.knobs.workers`."""
    levels: Annotated[list[KnobValue], Field(min_length=1)]


class Point(Model):
    """One combination of levels."""

    number: int
    """Position in the sweep, from 0."""
    levels: dict[str, KnobValue]
    """By factor."""

    @property
    def label(self) -> str:
        """`load.connections = 64, load.keepalive = always`."""
        return ", ".join(f"{key} = {value}" for key, value in self.levels.items())


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

    headline: str
    points: list[PointJudgement]


def cross(factors: list[Factor]) -> list[Point]:
    """Give every combination of levels once; the last factor changes fastest."""
    combinations = product(*(factor.levels for factor in factors))
    return [
        Point(number=number, levels=dict(zip((f.key for f in factors), levels, strict=True)))
        for number, levels in enumerate(combinations)
    ]
