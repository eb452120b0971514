"""An arm that has less of one thing than another one, to see whether that limits it."""

from typing import Annotated, Literal

from pydantic import Field

from webdyno.model.base import Model
from webdyno.model.interval import Interval

Resource = Literal["servers' CPU", "client's CPU", "link", "memory", "workers", "connections"]


class Intervention(Model):
    """What was taken from an arm that else is its baseline."""

    resource: Resource
    """Of what."""
    share: Annotated[float, Field(gt=0)]
    """What was left of it; above 1 where there was more."""
    knob: str | None = None
    """Of workers: which knob says their number."""


class Elasticity(Model):
    """By how many per cent a rate falls when there is one per cent less of a resource."""

    arm: str
    """The baseline, which is what this is said of."""
    resource: Resource
    knob: str | None = None
    share: float
    """What was left of it where that was tried, above 1 where there was more."""
    found: Interval
    """Near 1: that is the limit. Near 0: there is more of it than is needed."""
