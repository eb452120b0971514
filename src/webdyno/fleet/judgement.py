"""What several machines say of one experiment."""

from webdyno.core.base import Count, Interval, Model
from webdyno.core.experiment import Level
from webdyno.core.judgement import Verdict
from webdyno.core.sweep import Difference
from webdyno.core.text import Prose


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
