"""What changed between two runs of the same experiment."""

from typing import Literal

from webdyno.model.base import Model
from webdyno.model.experiment import Level
from webdyno.model.interval import Interval
from webdyno.model.judgement import Verdict


class Difference(Model):
    """Something about two runs that isn't equal."""

    what: str
    """Dotted name, such as `machine.kernel` or `versions.nginx.nginx`."""
    before: str
    after: str


class Change(Model):
    """One metric after, divided by the same before."""

    metric: str
    subject: str
    """An arm, or `arm / baseline` for the ratio of two arms."""
    of: Literal["arm", "ratio"]
    """Ratios between arms don't change when only the machine did."""
    change: Interval | None
    """None when a run has fewer than two blocks of it."""
    delta: float
    """Changes within 1/(1 + delta) to 1 + delta count as equivalent."""
    verdict: Verdict
    why: str


class RunComparison(Model):
    """The second run judged against the first."""

    verdict: Verdict
    """On the deciding metric over all arms: `slower` as soon as any arm is."""
    headline: str
    changes: list[Change]
    differences: list[Difference]
    """Of machine, versions and load generator: what else may have caused a change."""
    mismatches: list[Difference]
    """Of the experiments themselves: with any there is no verdict."""


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
    left_out: list[dict[str, Level]]
    """Points that only one of the runs has."""
