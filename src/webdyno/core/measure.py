"""How a comparison is made: rounds, slots, the stop rule.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from math import inf
from typing import Annotated, Literal, TypedDict

from pydantic import Field, model_validator

from webdyno.core.base import SHARE, Budget, Model, Pause, Quantity, Seconds, Soak
from webdyno.core.metrics import DecidingMetric

FIRST_SLOTS = 4
END_SHARE, MOST_END_S = 0.05, 2.0
"""Of a time that is a limit: what is left for the result and its report, and how much at most."""


class Measure(Model):
    """How the comparison is made: rounds, slots and the stop rule of the method."""

    decide_on: DecidingMetric = "throughput_rps"
    """The metric that the verdict is about."""
    slot_s: Seconds | None = None
    """The part of a slot that counts. By default from a pilot run; 0.5 s with other generators."""
    ramp_up_s: Pause | None = None
    """Discarded load at the beginning of each slot. By default from a pilot run; none with other
    generators, or where slots and warm-up are given."""
    slots_per_variant: Annotated[int, Field(ge=2, le=1_000, multiple_of=2)] | None = None
    """Slots of each variant in a round, even for ABBA. By default 2 in the first six rounds (4
    without a pilot run), then chosen, up to 8."""
    warmup_s: Pause | None = None
    """Load after each start before anything counts. By default from a pilot run; 1 s with other
    generators."""
    warmup_bursts: Literal["auto", "on", "off"] = "auto"
    """0.5 s of load, 0.5 s of pause, and so on, which leaves CPU time to a JIT compiler. auto:
    where servers work on after the load and it makes them faster."""
    precision: Annotated[float, Quantity(SHARE, 0.0001, 0.99)] = 0.02
    """Stop at this half-width of the ratio's 95% CI."""
    budget_s: Budget = 90.0
    """Total measuring time; `min_rounds` are measured in any case."""
    budget_is_limit: bool = False
    """Never measure for longer than `budget_s`, as `--time` asks for: counted from when servers are
    up for the first time. Rounds are shortened to fit; the result is what is known by then."""
    min_rounds: Annotated[int, Field(ge=6, le=10_000)] = 6
    """Six are the fewest for which an exact test can reach p < 0.05."""
    max_rounds: Annotated[int, Field(ge=6, le=10_000)] = 30
    """Stop after as many rounds, however wide the CI is."""
    patience: Annotated[float, Field(ge=1, le=100)] = 4.0
    """Extend `budget_s` and `max_rounds` to so many times, while a ratio is not known to 2.5% or a
    quarter of the difference. 1 where either is given, or factors."""
    answer_within_s: Pause = 25.0
    """A large difference of two variants (beyond 1.5×, known to a quarter) ends by then; half as
    much for each further variant. Not where `budget_s`, `max_rounds` or factors are given. 0:
    never."""
    count_instructions: bool = False
    """Count in each slot what servers execute in user space, which takes hardware counters. Always
    where a verdict, or a gate's limit, is about `instructions`."""
    soak_s: Soak | None = None
    """Uninterrupted load on each variant after the rounds. By default 10 s, or a quarter of the
    total time for all together where that is 5 s at least; none in gates, rankings, searches. A
    given one may end early where nothing was found."""
    rest_s: Seconds | None = None
    """After the slots of each round: each variant is left alone for so long, then holds 256 open
    connections for as long. By default not."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of all random orders; drawn and recorded by default."""

    @model_validator(mode="before")
    @classmethod
    def _what_is_given_counts(cls, given: object) -> object:
        if isinstance(given, dict) and {"budget_s", "max_rounds"} & given.keys():
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
