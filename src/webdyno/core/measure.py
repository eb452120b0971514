"""How a comparison is made (rounds, slots, the stop rule), and how capacities are searched for.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Literal, TypedDict

from pydantic import AfterValidator, Field, model_validator

from webdyno.core.base import (
    SHARE,
    Budget,
    Bursts,
    Delay,
    Model,
    Pause,
    Quantity,
    Seconds,
    Soak,
)
from webdyno.core.load import Load
from webdyno.core.metrics import DecidingMetric
from webdyno.core.objectives import Objective, objective
from webdyno.core.tables import is_table

FIRST_SLOTS = 4
END_SHARE, MOST_END_S = 0.05, 2.0
"""Of a time that is a limit: what is left for the result and its report, and how much at most."""


class Measure(Model):
    """How the comparison is made: rounds, slots and the stop rule of the method."""

    decide_on: DecidingMetric = "throughput_rps"
    """What the verdict is about."""
    slot_s: Seconds | None = None
    """Part of a slot that counts. By default from a pilot run, with other generators 0.5 s."""
    ramp_up_s: Pause | None = None
    """Discarded load at a slot's beginning. By default from a pilot run."""
    slots_per_variant: Annotated[int, Field(ge=2, le=1_000, multiple_of=2)] | None = None
    """Slots of a variant in a round. By default 2 in the first six rounds (4 without a pilot run),
    then up to 8."""
    warmup_s: Pause | None = None
    """Load after each start. By default from a pilot run, with other generators 1 s."""
    warmup_bursts: Bursts = "auto"
    """0.5 s of load, 0.5 s of pause, …, for JIT compilers. auto: where it makes servers faster."""
    precision: Annotated[float, Quantity(SHARE, 0.0001, 0.99)] = 0.02
    """Stop at this half-width of the ratio's 95% CI."""
    budget_s: Budget = 90.0
    """Total measuring time, but `min_rounds` at least."""
    budget_is_limit: bool = False
    """Never measure for longer than `budget_s`, as with `--time`: rounds are shortened."""
    min_rounds: Annotated[int, Field(ge=6, le=10_000)] = 6
    """With fewer an exact test can't reach p < 0.05."""
    max_rounds: Annotated[int, Field(ge=6, le=10_000)] = 30
    """Stop after so many, however wide the CI."""
    patience: Annotated[float, Field(ge=1, le=100)] = 4.0
    """Extend `budget_s` and `max_rounds` so many times, while a ratio isn't known to 2.5% or a
    quarter. 1 where either is given, or factors."""
    answer_within_s: Pause = 25.0
    """A difference beyond 1.5×, known to a quarter, ends by then; half as much for each variant
    beyond two. 0: never, as where `budget_s`, `max_rounds` or factors are given."""
    count_instructions: bool = False
    """Count what servers execute in user space, by hardware counters."""
    soak_s: Soak | None = None
    """Uninterrupted load on each variant at the end. By default 10 s, for all a quarter of the
    total time at most; none in gates, rankings, searches."""
    rest_s: Seconds | None = None
    """After each round: leave variants alone for so long, then with 256 open connections."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Of all random orders; drawn and recorded by default."""

    @model_validator(mode="before")
    @classmethod
    def _what_is_given_counts(cls, given: object) -> object:
        if is_table(given) and {"budget_s", "max_rounds"} & given.keys():
            return {"patience": 1.0, **given}
        return given

    @model_validator(mode="after")
    def _most_is_most(self) -> "Measure":
        if self.min_rounds > self.max_rounds:
            raise ValueError(
                f"min_rounds = {self.min_rounds} is more than max_rounds = {self.max_rounds}; "
                "raise max_rounds as well"
            )
        return self

    @property
    def limit_s(self) -> float:
        """When measuring has to end, in seconds since it began; without end but for a limit.

        A part of the time is left to judge, and to write the report.
        """
        if not self.budget_is_limit:
            return inf
        return self.budget_s - min(END_SHARE * self.budget_s, MOST_END_S)

    @property
    def first_slots_per_variant(self) -> int:
        """Slots of each variant in the first rounds, before anything is known of the noise."""
        return self.slots_per_variant or FIRST_SLOTS


class MeasureChanges(TypedDict, total=False):
    """What webdyno itself sets otherwise than an experiment says."""

    decide_on: DecidingMetric
    count_instructions: bool
    budget_s: float
    budget_is_limit: bool
    min_rounds: int
    max_rounds: int
    patience: float
    seed: int | None


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
    """Objectives, all of which have to hold: `p99<50ms`, `failures<0.1%`; of streams also `ttft
    p99<500ms`, `tpot p99<50ms`."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """Times between requests."""
    send_delay_budget_s: Delay = 0.0
    """See `load.send_delay_budget_s`."""
    width: Annotated[float, Field(ge=0.002, le=0.5)] = 0.05
    """How close a rate that passes and one that fails have to be."""
    overloads: Annotated[list[Annotated[float, Field(ge=1.05, le=10)]], Field(max_length=8)] = [
        1.2,
        2.0,
    ]
    """Multiples of the capacity, tried after the search in turns."""
    longest_trial_s: Seconds | None = None
    """Of the deciding trials. By default 4 s or 50 times the longest latency allowed."""

    sweep_s: Budget | None = None
    """Afterwards, half each: latency by arrival rate, throughput by connections."""

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
