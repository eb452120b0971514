"""Runs of one experiment next to each other: two of them, or those of several machines."""

from typing import Literal

from webdyno.core.base import Interval, Model
from webdyno.core.experiment import Level
from webdyno.core.judgement import Rank, Verdict
from webdyno.core.text import Prose


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
