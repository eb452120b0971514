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
    """The metric that the verdict is about; the others are shown below it."""
    slot_s: Seconds | None = None
    """The part of a slot that counts: one stretch of load on one variant. By default a pilot run
    finds it; 0.5 s with load generators other than webdyno's own, which have no pilot run."""
    ramp_up_s: Pause | None = None
    """Discarded load at the beginning of each slot. By default a pilot run finds it for each
    variant; none where slots and warm-up are given, or with other load generators."""
    slots_per_variant: Annotated[int, Field(ge=2, le=1_000, multiple_of=2)] | None = None
    """Slots of each variant in a round; even, so that ABBA order is balanced. By default the first
    six rounds have 2 (4 without a pilot run); then it is chosen from the variation, up to 8."""
    warmup_s: Pause | None = None
    """Load on each variant after its start before anything counts. By default a pilot run finds it
    for each variant; 1 s with other load generators."""
    warmup_bursts: Literal["auto", "on", "off"] = "auto"
    """Warm up in bursts of 0.5 s with pauses of 0.5 s, in which a JIT compiler gets the CPU time
    that the load takes from it: `on` for all variants. `auto`: unless a warm-up is given, pilot
    runs try it where servers continue to work after the load, and keep it where that makes them
    faster."""
    precision: Annotated[float, Quantity(SHARE, 0.0001, 0.99)] = 0.02
    """Target half-width of the ratio's 95% CI: stop when it is reached."""
    question: Annotated[str, AfterValidator(_question)] | None = None
    """A one-sided question, `faster` or `not-slower-by 5%`: stop as soon as it is answered instead
    of at the precision."""
    budget_s: Budget = 90.0
    """Total measuring time: stop then, but never before `min_rounds` rounds."""
    min_rounds: Annotated[int, Field(ge=6, le=10_000)] = 6
    """Six rounds are the fewest for which an exact two-sided test can reach p < 0.05."""
    max_rounds: Annotated[int, Field(ge=6, le=10_000)] = 30
    """Stop after as many rounds, however wide the CI is."""
    patience: Annotated[float, Field(ge=1, le=100)] = 4.0
    """Extension: at most so many times `budget_s` and `max_rounds`, while a ratio is not even known
    to 2.5% or a quarter of the difference; 1 where `budget_s`, `max_rounds` or factors are
    given."""
    answer_within_s: Pause = 25.0
    """Time to the result for a large difference (beyond 1.5×, known to a quarter of it) of two
    variants; half as much more for each further one. The run ends with the last round that fits,
    unless `budget_s`, `max_rounds` or factors are given, and slots of up to 0.6 s shrink, down to
    0.4 s. A longer time gives more precision; 0 turns this off."""
    soak_s: Soak | None = None
    """Soak: uninterrupted load on each variant after the rounds; it shows stalls, drifts and leaks
    that short slots can't. By default 10 s, or a quarter of the total time for all variants
    together, where that is 5 s at least; none in gates, rankings and searches. 0 turns it off. A
    given one ends earlier where nothing was found and nothing can change by 5% over all of it."""
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
