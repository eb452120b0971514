"""Capacity: the highest arrival rate at which objectives still hold, and its trials."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from webdyno.core.base import SHARE, TIME, Budget, Count, Delay, Model, Seconds
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult

if TYPE_CHECKING:
    from webdyno.core.histogram import Histogram

FAILURES = "failures"
EXAMPLES = "'p99<50ms' or 'failures<0.1%'"
_WRITTEN = re.compile(r"(p\d{1,2}(?:\.\d{1,3})?|failures)\s*<\s*(.+)", re.ASCII)


@dataclass(frozen=True)
class Objective:
    """What has to hold under a load: a percentile of latency, or the share of failures."""

    text: str
    within_s: float | None
    """What the percentile has to stay below; None where failures are meant."""
    allowed: float
    """Share of the requests that may be beyond it."""

    @property
    def name(self) -> str:
        """What it is about: `p99`, `failures`."""
        return self.text.partition("<")[0].strip()

    def beyond(self, load: LoadResult, times: "Histogram") -> int:
        """Count the requests due in a slot's window that were beyond it.

        A response that is no right one is in no time a right one, however fast it came. Those that
        timed out or were never sent are among the times, with how long they had waited.
        """
        if self.within_s is None:
            return load.failures.total
        return _later_than(times, self.within_s * 1e6) + _fast_failures(load)


def objective(text: str) -> Objective:
    """Read `p99<50ms` or `failures<0.1%`; raise ValueError for anything else."""
    match = _WRITTEN.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no objective; write {EXAMPLES}")
    name, bound = match[1], match[2]
    if name == FAILURES:
        allowed = SHARE.read(bound)
        if allowed is None or not 0 < allowed < 1:
            raise ValueError(f"{bound!r} is no share between 0% and 100%; write 'failures<0.1%'")
        return Objective(text.strip(), None, allowed)
    quantile, within_s = float(name[1:]) / 100, TIME.read(bound)
    if not 0 < quantile < 1:
        raise ValueError(f"{name} is no percentile; write {EXAMPLES}")
    if not within_s or bound.strip()[-1].isdigit():
        raise ValueError(f"{bound!r} is no time with a unit; write 'p99<50ms'")
    return Objective(text.strip(), within_s, round(1 - quantile, 9))


def _read(text: str) -> str:
    return objective(text).text


TRIAL_S, TRIAL_WAITS = 4.0, 50.0
LEAST_TRIAL_S, LEAST_TRIAL_WAITS = 1.0, 20.0
MOST_DECIDING = 4
"""Trials of full length in a search, each where the capacity seems to be by all before it."""
USUAL_MEASURE_OF_SEARCH: dict[str, object] = {"decide_on": "capacity_rps", "budget_s": 600.0}
"""Searches take half a minute to a minute in each round."""


class CapacitySettings(Model):
    """How the capacity of each variant is searched for in each round."""

    slo: Annotated[list[Annotated[str, AfterValidator(_read)]], Field(min_length=1, max_length=8)]
    """The objectives, all of which have to hold: `p99<50ms`, `failures<0.1%`."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """Times between requests."""
    send_delay_budget_s: Delay = 0.0
    """See `load.send_delay_budget_s`."""
    width: Annotated[float, Field(ge=0.002, le=0.5)] = 0.05
    """How close a rate that passes and one that fails have to be before the deciding trials."""
    overloads: Annotated[list[Annotated[float, Field(ge=1.05, le=10)]], Field(max_length=8)] = [
        1.2,
        2.0,
    ]
    """Multiples of the capacity that are tried after the search, in turns, a round each, where the
    time is long enough."""
    longest_trial_s: Seconds | None = None
    """Length of the deciding trials, others take a quarter. By default 4 s or 50 times the longest
    latency allowed."""

    sweep_s: Budget | None = None
    """Afterwards, half of it each: latency at arrival rates around the capacities, and throughput
    at numbers of connections."""

    @property
    def objectives(self) -> list[Objective]:
        """The objectives, read."""
        return [objective(text) for text in self.slo]

    @property
    def deciding_s(self) -> float:
        """Length of the trials that decide. Queues take several times the longest wait to build."""
        if self.longest_trial_s is not None:
            return self.longest_trial_s
        longest_wait_s = max(goal.within_s or 0.0 for goal in self.objectives)
        return max(TRIAL_S, TRIAL_WAITS * longest_wait_s)

    @property
    def least_deciding_s(self) -> float:
        """How short a limit of time may make them, unless their length was given."""
        longest_wait_s = max(goal.within_s or 0.0 for goal in self.objectives)
        least_s = max(LEAST_TRIAL_S, LEAST_TRIAL_WAITS * longest_wait_s)
        return self.longest_trial_s or min(self.deciding_s, least_s)

    def check(self, others: Mapping[str, bool], loads: Sequence[Load], *, varies: bool) -> None:
        """Raise ValueError where something doesn't go with a search.

        What `loads` of variants have of their own, or that an experiment `varies`, or `others`: in
        words, whether it is there.
        """
        if self.sweep_s is not None and varies:
            raise ValueError(
                "capacity.sweep_s is for capacities of one point, and factors give several: leave "
                "one of them out"
            )
        faults = {
            'loop = "open"': any(load.loop == "open" for load in loads),
            'arrival_unit = "connection"': any(load.arrival_unit == "connection" for load in loads),
            "think_s": any(load.think_s for load in loads),
            "connection_ramp_s": any(load.connection_ramp_s for load in loads),
            "count in [load]": any(load.count for load in loads),
            **others,
        }
        if unfit := [what for what, is_there in faults.items() if is_there]:
            raise ValueError(
                f"[capacity] searches for the rate of an open loop by itself, with webdyno's own "
                f"load generator: omit {unfit[0]}"
            )

    @property
    def of_load(self) -> dict[str, object]:
        """What trials change of a load; their rate comes with each of them."""
        return {
            "loop": "open",
            "arrivals": self.arrivals,
            "send_delay_budget_s": self.send_delay_budget_s,
        }


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
    """By objective: the longest latency allowed. None where failures are meant."""
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
        asked=times.total + _fast_failures(load),
        beyond=[
            None if goal.within_s is None and load.gave_up else goal.beyond(load, times)
            for goal in objectives
        ],
        allowed=[goal.allowed for goal in objectives],
        within_s=[goal.within_s for goal in objectives],
        client_limited=client_limited,
    )


def _later_than(times: "Histogram", limit_us: float) -> int:
    """Count times above a limit; those of its bucket are taken as spread evenly."""
    above = (times.low + times.width - limit_us) / times.width
    return round(float((times.counts * above.clip(0, 1)).sum()))


def _fast_failures(load: LoadResult) -> int:
    """Count failures that are not among the times: all but those that timed out."""
    return load.failures.total - (load.failures.timeout or 0)


@dataclass(frozen=True)
class Level:
    """All trials at one rate."""

    rate_rps: float
    trials: tuple[Trial, ...]

    @property
    def length_s(self) -> float:
        """How long the rate was tried, in all."""
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
    failing = next((level for level in known if passes.get(level.rate_rps) is False), None)
    passing = [
        level
        for level in known
        if passes.get(level.rate_rps) and (failing is None or level.rate_rps < failing.rate_rps)
    ]
    return (passing[-1] if passing else None), failing
