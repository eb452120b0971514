"""Published studies: what they claimed, and what of it holds where it is measured again."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from webdyno.core.base import Interval, Model
from webdyno.core.experiment import GeneratorName, Level
from webdyno.core.metrics import MetricName


class Claim(Model):
    """One sentence of a study, and what it comes down to: a ratio or a figure of variants.

    A figure is of the study's machine; it is shown next to ours, without a verdict.
    """

    says: str
    published: str
    """The study's own figures; empty if it gave none."""
    experiment: str
    metric: MetricName = "throughput_rps"
    variants: Annotated[list[str], Field(min_length=1)]
    against: str = ""
    """The variant that the others are compared with; none where the claim is a figure."""
    above: Annotated[float, Field(gt=0)] | None = None
    below: Annotated[float, Field(gt=0)] | None = None
    """The claim is that variant / against lies between these bounds, for each of the variants."""
    at: dict[str, Level] = {}
    """The levels of the experiment's factors to which it is confined."""

    @property
    def is_figure(self) -> bool:
        """Whether it is about a value of the variants, not about a ratio."""
        return not self.against

    @model_validator(mode="after")
    def _can_be_judged(self) -> "Claim":
        bounded = self.above is not None or self.below is not None
        if self.is_figure and bounded:
            raise ValueError("above and below are bounds of a ratio, which needs against")
        if not self.is_figure and not bounded:
            raise ValueError("a claim needs above or below, the bounds of its ratio")
        return self


class Publication(Model):
    """A study as data: the experiments that repeat it, and its claims."""

    name: str
    title: str
    setting: str
    experiments: Annotated[list[str], Field(min_length=1)]
    claims: Annotated[list[Claim], Field(min_length=1)]


class Outcome(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "doesn't hold"
    INCONCLUSIVE = "inconclusive"
    NOT_JUDGED = "not judged"
    SHOWN = "published, here"
    """A figure of another machine, next to ours."""


class GeneratorAnswer(Model):
    """What one load generator's points say of a claim."""

    generator: GeneratorName
    outcome: Outcome
    found: list[Interval]
    """Ratios, or values of the metric where the claim is a figure; of the points that have one."""
    why: str


class ClaimRow(Model):
    """A line of the table of claims."""

    study: str
    claim: Claim
    reported: list[GeneratorAnswer]
    """By webdyno's own generator first, then as published."""
    why: str = ""
    """Why nothing is reported."""

    @property
    def outcome(self) -> Outcome:
        """What counts: the claim as measured by webdyno's own generator."""
        return self.reported[0].outcome if self.reported else Outcome.NOT_JUDGED

    @property
    def reason(self) -> str:
        return self.reported[0].why if self.reported else self.why
