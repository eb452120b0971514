"""Capacity: the highest arrival rate at which objectives still hold, by the trials of a search.

ln(share of late requests) rises with ln(rate) in a straight line, nearly, where it is small: the
capacity is where that line crosses what is allowed. A trial sees few independent waits, since late
requests come in clusters, so its share scatters widely and is skewed: most trials at the capacity
pass. The line of greatest likelihood inherits that; the mean over all lines, each with its
likelihood, doesn't where rates don't hang on what was seen. In a search they do; what that leaves
widens intervals (docs/validation/capacity.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from webdyno.core.base import Count, Model
from webdyno.core.load_result import LoadResult
from webdyno.core.objectives import Objective, fast_failures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Grid = NDArray[np.float64]

Purpose = Literal["search", "recovery", "overload", "return"]
"""Of a trial: to find the capacity; to see whether the servers come back after a rate was too high;
to see what they do at a multiple of the capacity, and how long they take to come back from it."""


class Trial(Model):
    """What a slot at a rate of the search's choice says of the objectives."""

    purpose: Purpose = "search"
    start: Count = 0
    """Number of the servers' fresh start in this round; they are started again after a collapse."""
    rate_rps: Annotated[float, Field(gt=0)]
    """What was due per second."""
    length_s: Annotated[float, Field(gt=0)]
    """The part that counts."""
    asked: Count
    """Requests that were due in it."""
    beyond: list[Count | None]
    """By objective: how many of them were beyond it. None for failures where enough was late, so
    that it was not awaited what would fail."""
    allowed: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """By objective: share of them that may be."""
    within_s: list[Annotated[float, Field(gt=0)] | None] = []
    """By objective: the longest time allowed. None where failures are meant."""
    evenly_spaced: bool = False
    """Whether requests came at even intervals, so that no run of arrivals made a queue."""
    client_limited: bool = False
    """Whether the load generator was too slow, so that what is beyond may be its doing."""
    stalled_s: float = 0.0
    """For how long the servers answered next to nothing, by their own doing."""
    died: str = ""
    """How a server ended meanwhile; empty where all lived."""
    times: float | None = None
    """At which multiple of the capacity an overload was, or the load after one."""
    back_s: float | None = None
    """After an overload: so long the objectives did not hold; None where they never did again."""

    @model_validator(mode="after")
    def _counts_each_objective(self) -> Self:
        if len(self.beyond) != len(self.allowed):
            raise ValueError("a trial has a count for each of its objectives")
        return self

    @property
    def holds(self) -> bool:
        """Whether no more is beyond any objective than may be."""
        return Level(self.rate_rps, (self,)).excess <= 1

    @property
    def goodput_rps(self) -> float:
        """Requests per second that were beyond no objective."""
        return max(self.asked - max(count or 0 for count in self.beyond), 0) / self.length_s


def trial_of(
    load: LoadResult, rate_rps: float, objectives: list[Objective], *, client_limited: bool
) -> Trial:
    """Count what a slot's responses say of the objectives."""
    from webdyno.core.histogram import Histogram  # numpy takes a while to import

    times = Histogram.decode(load.latency_us.histogram or "")
    return Trial(
        rate_rps=rate_rps,
        length_s=load.measured_s,
        asked=times.total + fast_failures(load),
        beyond=[
            None if goal.within_s is None and load.gave_up else goal.beyond(load, times)
            for goal in objectives
        ],
        allowed=[goal.allowed for goal in objectives],
        within_s=[goal.within_s for goal in objectives],
        client_limited=client_limited,
    )


@dataclass(frozen=True)
class Level:
    """All trials at one rate."""

    rate_rps: float
    trials: tuple[Trial, ...]

    @property
    def length_s(self) -> float:
        return sum(trial.length_s for trial in self.trials)

    @property
    def excess(self) -> float:
        """The share beyond an objective over what is allowed, of the worst objective."""
        return max(beyond / max(asked, 1) / allowed for beyond, asked, allowed in self.seen)

    @property
    def seen(self) -> list[tuple[int, int, float]]:
        """By objective: how many were beyond it, of how many whose end is known; what may be."""
        counts = []
        for number, allowed in enumerate(self.trials[0].allowed):
            known = [trial for trial in self.trials if trial.beyond[number] is not None]
            beyond = sum(trial.beyond[number] or 0 for trial in known)
            counts.append((beyond, sum(trial.asked for trial in known), allowed))
        return counts


def by_rate(trials: list[Trial]) -> list[Level]:
    """Group the trials of a search by rate, from the lowest to the highest."""
    rates = sorted({trial.rate_rps for trial in trials})
    return [
        Level(rate, tuple(trial for trial in trials if trial.rate_rps == rate)) for rate in rates
    ]


def bracket(known: list[Level], passes: dict[float, bool]) -> tuple[Level | None, Level | None]:
    """Return the highest rate that passes below the lowest one that doesn't, and that one."""
    passing = None
    for level in known:
        if passes.get(level.rate_rps) is False:
            return passing, level
        if passes.get(level.rate_rps):
            passing = level
    return passing, None


SHALLOWEST, STEEPEST = 3.0, 300.0
"""Slopes of ln(share beyond) over ln(rate): at a knee all is well, and 1% more is too much."""
USUAL_STEEPNESS, STEEPNESS_FACTOR = 30.0, 2.0
"""A slope of which nothing is known before, and the factor to which one is known."""
QUEUE_STEEPNESS = 1.4
"""Slope of a queue, in arrivals within the longest latency allowed: 1 where times of service are
exponentially distributed, 2 where all are the same (Kleinrock 1975, 5.6; Erlang 1909)."""
RARE = -2.0
"""ln of the share up to which what follows from rare waits counts; clusters are no fewer above."""
SURE_CLUSTERS = 2.0
"""As many at least where all are late: an overload is no matter of chance."""
ONLY_WHERE_ALL = 8
"""Power of the share by which they count: a half has next to none of them."""
CLUSTERS = 64.0
"""Independent clusters in one of the longest trials, where no queue says how many."""
BEYOND_BRACKET = 4.0
"""The shares at the ends of a bracket mislead by this (ln) at most."""
LEAST_LN_SHARE = -300.0
"""No request is late then, and floats aren't at their end."""
STEEPNESSES, CROSSINGS = 20, 61
"""Lines that are looked at."""
BELOW, ABOVE = 0.8, 1.35
"""Trials whose rates lie between these two shares of the middle of the bracket say where the
capacity is."""


class TrialPoint(NamedTuple):
    """What a trial says of an objective."""

    away: float
    """ln of its rate over the middle of the bracket."""
    length_s: float
    asked: int
    """Requests that were due."""
    beyond: int
    """Those of them beyond the objective."""


class Crossing(NamedTuple):
    """Where a line crosses what is allowed, as ln(rate)."""

    away: float
    """From the middle of the bracket."""
    error: float
    """Standard deviation."""
    steepness: float

    @property
    def bias(self) -> float:
        """By how much a search finds too much, about.

        It goes on upwards where a trial passed by chance. The share's logarithm is too low by half
        of its variance then, (s·error)²/2, and the rate too high by s·error²/2. At a knee the error
        is the bracket's width, to which both sides contribute alike: no more than half of it.
        """
        return min(self.steepness * self.error, 1.0) * self.error / 2


# A judgement asks for a round's capacity in several places, and a run is judged after each round.
@lru_cache(maxsize=4096)
def crossing(
    points: tuple[TrialPoint, ...],
    allowed: float,
    bracket: tuple[float, float],
    middle_rps: float,
    within_s: float | None,
) -> Crossing:
    """Average over lines through the trials, by the likelihood of negative binomial counts.

    Hilbe 2011, chapter 8, for the counts. `within_s`: the longest latency allowed; None where the
    objective is about failures, or no queue comes about by chance, as with arrivals at even
    intervals.
    """
    import numpy as np  # it and scipy take a while to import

    away, length_s, asked, beyond = np.array(points, float).T
    steepness = np.geomspace(SHALLOWEST, STEEPEST, STEEPNESSES)[:, None, None]
    low, high = bracket[0] - BEYOND_BRACKET / steepness, bracket[1] + BEYOND_BRACKET / steepness
    parts = (np.arange(CROSSINGS) + 0.5) / CROSSINGS
    crossings = low + (high - low) * parts[None, :, None]
    ln_share = (log(allowed) + steepness * (away - crossings)).clip(LEAST_LN_SHARE, 0.0)
    if within_s is None:
        usual, clusters = USUAL_STEEPNESS, CLUSTERS * length_s / length_s.max()
    else:
        usual = min(max(QUEUE_STEEPNESS * middle_rps * within_s, SHALLOWEST), STEEPEST)
        clusters = _clusters_per_s(ln_share, steepness, within_s) * length_s
        clusters += SURE_CLUSTERS * np.exp(ONLY_WHERE_ALL * ln_share)
    likely = _ln_likelihood(beyond, asked * np.exp(ln_share), clusters).sum(axis=-1)
    likely -= (np.log(steepness[..., 0] / usual) / log(STEEPNESS_FACTOR)) ** 2 / 2
    weight = np.exp(likely - likely.max())
    weight /= weight.sum()
    mean = float((weight * crossings[..., 0]).sum())
    variance = float((weight * (crossings[..., 0] - mean) ** 2).sum())
    steep = float((weight * np.log(steepness[..., 0])).sum())
    return Crossing(mean, variance**0.5, float(np.exp(steep)))


def _clusters_per_s(ln_share: "Grid", steepness: "Grid", within_s: float) -> "Grid":
    """Return how many independent clusters of late requests a queue has in a second.

    As Brownian motion with drift, reflected at zero (heavy traffic, Whitt 1989), waits are
    exponential with the rate ln(1/share)/within, which falls with the arrival rate by the slope. A
    visit beyond `within` then takes within · slope / ln²(1/share) on average, its mean square is 4
    times the square of that, and the variance of the share in a time that of so many clusters.
    """
    import numpy as np

    rare = np.minimum(ln_share, RARE)
    per_s: Grid = np.exp(rare) * rare**2 / (4 * within_s * steepness)
    return per_s


def _ln_likelihood(count: "Grid", mean: "Grid", clusters: "Grid") -> "Grid":
    """Return ln of the likelihood of negative binomial counts, but for what is theirs alone."""
    import numpy as np
    from scipy.special import gammaln

    size = mean / clusters
    ways = gammaln(count + clusters) - gammaln(clusters)
    likely: Grid = ways + count * np.log(size / (1 + size)) - clusters * np.log1p(size)
    return likely


class CapacityEstimate(NamedTuple):
    """The rate up to which all objectives hold, by one search."""

    rate_rps: float
    bias: float = 0.0
    """By how much (ln) such a search finds too much, about."""


def capacity_of(trials: list[Trial]) -> float | None:
    """Return the rate up to which all objectives hold; None where none was found."""
    estimate = capacity_estimate(trials)
    return estimate.rate_rps if estimate else None


def capacity_estimate(trials: list[Trial]) -> CapacityEstimate | None:
    """Return what a search found; None where it came to no end."""
    searched = [trial for trial in trials if trial.purpose == "search"]
    known = by_rate(searched)
    passing, failing = ends(known)
    if passing is None or len(known) == 1:
        return None
    if failing is None:  # it is at least that
        return CapacityEstimate(passing.rate_rps)
    return _between(searched, passing.rate_rps, failing.rate_rps)


def is_at_least(trials: list[Trial]) -> bool:
    """Whether the load generator, not the servers, ended the search upwards."""
    _, failing = ends(by_rate([trial for trial in trials if trial.purpose == "search"]))
    if failing is None:
        return True
    theirs = tuple(trial for trial in failing.trials if not trial.client_limited)
    return not theirs or Level(failing.rate_rps, theirs).excess <= 1


def ends(known: list[Level]) -> tuple[Level | None, Level | None]:
    """Return the bracket by what was seen at each rate, however short."""
    return bracket(known, {level.rate_rps: level.excess <= 1 for level in known})


def _between(trials: Sequence[Trial], passing_rps: float, failing_rps: float) -> CapacityEstimate:
    """Find where the share beyond an objective is what is allowed, of the objective hit first."""
    middle_rps = sqrt(passing_rps * failing_rps)
    lowest_rps = min(BELOW * middle_rps, passing_rps)
    highest_rps = max(ABOVE * middle_rps, failing_rps)
    near = [
        trial
        for trial in trials
        if trial.asked and trial.length_s > 0 and lowest_rps <= trial.rate_rps <= highest_rps
    ]
    if not near:
        return CapacityEstimate(passing_rps)
    queues = not near[0].evenly_spaced
    longest_waits_s = dict(enumerate(near[0].within_s)) if queues else {}
    sides = (log(passing_rps / middle_rps), log(failing_rps / middle_rps))

    def of(objective: int, allowed: float) -> Crossing:
        points = tuple(
            TrialPoint(log(trial.rate_rps / middle_rps), trial.length_s, trial.asked, beyond)
            for trial in near
            if (beyond := trial.beyond[objective]) is not None
        )
        return crossing(points, allowed, sides, middle_rps, longest_waits_s.get(objective))

    shares = list(enumerate(near[0].allowed))
    # One that held in all of them says no more than that it is hit somewhere above.
    hit = [
        (number, allowed)
        for number, allowed in shares
        if any((trial.beyond[number] or 0) > allowed * trial.asked for trial in near)
    ]
    first = min(of(number, allowed) for number, allowed in hit or shares)
    return CapacityEstimate(middle_rps * exp(first.away), first.bias)
