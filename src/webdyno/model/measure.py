"""How a comparison is made: rounds, slots, the stop rule, the question.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from typing import Annotated, Literal, TypedDict

from pydantic import AfterValidator, Field, model_validator

from webdyno.model.base import Model
from webdyno.model.metrics import DecidingMetric
from webdyno.model.quantities import SHARE, Budget, Pause, Quantity, Seconds, Soak

FIRST_SLOTS = 4
FASTER_QUESTION, NOT_SLOWER_QUESTION = "faster", "not-slower-by"


def tolerance_of(question: str) -> float:
    """Read `faster` or `not-slower-by 5%`; give the share by which it may be slower.

    Raises ValueError.
    """
    word, _, amount = question.strip().partition(" ")
    if word == FASTER_QUESTION and not amount:
        return 0.0
    tolerance = SHARE.read(amount) if word == NOT_SLOWER_QUESTION else None
    if tolerance is None or not 0 < tolerance < 1:
        raise ValueError(
            f"{question!r} is no question; there are two, 'faster' and 'not-slower-by 5%' (any "
            "share between 0% and 100%)"
        )
    return tolerance


def _question(text: str) -> str:
    tolerance_of(text)
    return text.strip()


class Measure(Model):
    """How the comparison is made: rounds, slots and the stop rule of the method."""

    decide_on: DecidingMetric = "throughput_rps"
    """The metric that the verdict is about; the others are shown beside it."""
    slot_s: Seconds | None = None
    """The part of a slot that counts: one stretch of load on one variant. Unless given, a pilot
    finds it; 0.5 s with load generators other than webdyno's own, which know no pilot."""
    ramp_up_s: Pause | None = None
    """Load at the beginning of each slot that doesn't count. Unless given, a pilot finds it for
    each variant; none where slots and warm-up are given, or with load generators other than
    webdyno's own."""
    slots_per_variant: Annotated[int, Field(ge=2, le=1_000, multiple_of=2)] | None = None
    """Slots of each variant in a round; even, so that ABBA order is balanced. Unless given, the
    first six rounds have 2 (4 without a pilot); then it is chosen from the noise, up to 8."""
    warmup_s: Pause | None = None
    """Load on each variant after its start before anything counts. Unless given, a pilot finds it
    for each variant; 1 s with other load generators than webdyno's own."""
    warmup_bursts: Literal["auto", "on", "off"] = "auto"
    """Warm up in bursts of 0.5 s with pauses of 0.5 s, in which a JIT compiler gets the CPU time
    that the load takes from it: `on` for all variants. `auto`: unless a warm-up is given, pilots
    try it where servers go on working after the load, and do it where that makes them faster."""
    precision: Annotated[float, Quantity(SHARE, 0.0001, 0.99)] = 0.02
    """Stop when the interval of the ratio is at most this far to each side of the estimate."""
    question: Annotated[str, AfterValidator(_question)] | None = None
    """A one-sided question, `faster` or `not-slower-by 5%`: stop as soon as it is answered instead
    of when the interval is narrow."""
    budget_s: Budget = 90.0
    """Stop after this much time all the same, though never before `min_rounds` rounds."""
    min_rounds: Annotated[int, Field(ge=6, le=10_000)] = 6
    """Six rounds are the fewest for which an exact two-sided test can reach p < 0.05."""
    max_rounds: Annotated[int, Field(ge=6, le=10_000)] = 30
    """Stop after as many rounds, however wide the interval is."""
    patience: Annotated[float, Field(ge=1, le=100)] = 4.0
    """How many times `budget_s` and `max_rounds` it takes at most, while a ratio isn't even known
    to 2.5% or a quarter of the difference; 1 where `budget_s`, `max_rounds` or factors are
    given."""
    answer_within_s: Pause = 25.0
    """The time within which a large difference (beyond 1.5×, known to a quarter of it) of two
    variants is told; half as much more for each further one. So a run ends with the last round that
    ends in time, unless `budget_s`, `max_rounds` or factors are given, and slots of up to 0.6 s
    become shorter, down to 0.4 s. A longer time tells such a difference more precisely; 0 sets
    none."""
    soak_s: Soak | None = None
    """Load on each variant without a break, after the rounds: it shows stalls, drifts and leaks
    that short slots can't. Unless given, 10 s of the budget, or a quarter of that for all variants
    together, where it is 5 s at least; none in gates, rankings and searches. 0 leaves it out. One
    that is given ends earlier where nothing was found and nothing can change by 5% in all of it."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of all random orders; drawn and recorded when it isn't given."""

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
    def first_slots_per_variant(self) -> int:
        """Slots of each variant in the first rounds, before anything is known of the noise."""
        return self.slots_per_variant or FIRST_SLOTS


class MeasureChanges(TypedDict, total=False):
    """What webdyno itself sets otherwise than an experiment says."""

    decide_on: DecidingMetric
    question: str | None
    budget_s: float
    min_rounds: int
    max_rounds: int
    patience: float
    seed: int
