"""A history: how head compared with a pinned reference, gate after gate, a line of a file each."""

import re
from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from webdyno.core.base import ENDLESS, Amount, Interval, Model
from webdyno.core.format import is_useful
from webdyno.core.limits import GateJudgement
from webdyno.core.metrics import METRICS, MetricName
from webdyno.core.testbed import Machine

COMMIT = re.compile(r"\((?P<commit>[0-9a-f]{10,}( with changes)?)\)$")
UNTOLD = {"invalid", "not asked"}
"""Answers of claims whose ratio says nothing of head."""


class PastRatio(Model):
    """Head ÷ reference: one metric of one endpoint."""

    endpoint: str
    metric: MetricName
    ratio: Interval

    @model_validator(mode="after")
    def _is_a_ratio(self) -> Self:
        """Refuse what no gate finds."""
        ends = (self.ratio.low, self.ratio.estimate, self.ratio.high)
        if not all(1 / ENDLESS < end < ENDLESS for end in ends) or self.ratio.low > self.ratio.high:
            raise ValueError("ratio should be above 0 and finite, its low end below the high one")
        return self


class PastGate(Model):
    """A gate, as the history keeps it."""

    format: Literal[1] = 1
    measured_at: AwareDatetime
    reference: str
    """The gate's baseline, such as `v1.2 (1a2b3c4d5e)`."""
    head: str
    machine: Machine
    rate_rps: Amount | None = None
    """The arrival rate; None in a closed loop."""
    ratios: list[PastRatio] = Field(min_length=1)

    @property
    def commit(self) -> str:
        """The commit that was measured, or the name of what has none."""
        return commit_in(self.head)


def commit_in(name: str) -> str:
    """Give the commit that a name of a gate's variant holds, or the name itself."""
    match = COMMIT.search(name)
    return match["commit"] if match else name


def past_gate(gate: GateJudgement, measured_at: AwareDatetime) -> PastGate | None:
    """Give what a history keeps of a gate; None where nothing was measured that it could keep."""
    ratios = [
        PastRatio(endpoint=claim.endpoint, metric=claim.metric, ratio=ratio)
        for claim in gate.claims
        if claim.worse and claim.answer not in UNTOLD
        if is_useful(claim.worse)
        for ratio in [_of_values(claim.worse, claim.metric)]
    ]
    if gate.machine is None or not ratios:
        return None
    return PastGate(
        measured_at=measured_at,
        reference=gate.baseline,
        head=gate.head,
        machine=gate.machine,
        rate_rps=gate.rate_rps,
        ratios=ratios,
    )


def _of_values(worse: Interval, metric: str) -> Interval:
    """Give head's value divided by the reference's, of how many times worse head is."""
    return worse if METRICS[metric].metric.better == "lower" else worse.inverse()


class Plateau(Model):
    """Gates that follow each other, whose ratios lie around the same value."""

    gates: list[int]
    """Their places in the history."""
    ratio: Interval
    """The mean of their ratios."""
    change: Interval | None
    """This level ÷ the one before; None of the first."""


class Curve(Model):
    """One metric of one endpoint, gate after gate."""

    endpoint: str
    metric: str
    levels: list[Plateau]
