"""Runs of one experiment next to each other: two of them, or those of several machines."""

from typing import Literal

from webdyno.model.base import Count, Interval, Model
from webdyno.model.experiment import Level
from webdyno.model.judgement import Rank, Verdict
from webdyno.model.text import Prose


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


class Replicate(Model):
    """What one machine says of a variant and the baseline."""

    machine: str
    """The names of its runs."""
    verdict: Verdict
    ratio: Interval | None
    """What the verdict rests on, interference counted in the worst case."""
    rounds: Count
    why: Prose | None = None
    """Why its verdict is `invalid`, if it is: it has no part in what is said of all machines."""


class AcrossMachines(Model):
    """Variant `a` against baseline `b` on the deciding metric.

    Machines are an outer random effect.
    """

    metric: str
    a: str
    b: str
    delta: float
    """Ratios within 1/(1 + delta) to 1 + delta count as equivalent."""
    replicates: list[Replicate]
    mean: Interval | None
    """Of the ratio on machines of this kind, on average; None of fewer than two."""
    another: Interval | None
    """In which the ratio lies that one more machine of this kind would show."""
    machines_differ: bool
    """Whether the machines' ratios surely aren't all the same."""
    verdict: Verdict
    """By the mean's interval."""
    why: Prose

    @property
    def valid(self) -> list[Replicate]:
        return [machine for machine in self.replicates if machine.verdict is not Verdict.INVALID]


class Variety(Model):
    """Something that isn't the same on all machines."""

    what: str
    """Dotted name, such as `machine.kernel` or `versions.nginx.nginx`."""
    values: dict[str, str]
    """By machine."""


class FleetPoint(Model):
    """What the machines say at one point of the experiment."""

    levels: dict[str, Level]
    """By factor; empty in an experiment without factors."""
    verdict: Verdict
    """The weightiest of its comparisons."""
    headline: Prose
    comparisons: list[AcrossMachines]


class FleetJudgement(Model):
    """Runs of one experiment on several machines, judged together."""

    verdict: Verdict
    """The weightiest of all points; `invalid` without any."""
    machines: list[str]
    points: list[FleetPoint]
    excluded: list[dict[str, Level]]
    """Points that not all of the machines have."""
    varieties: list[Variety]
    mismatches: dict[str, list[Difference]]
    """By run: in what its experiment differs from the first run's. With any there is no verdict."""
