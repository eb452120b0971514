"""The answer of a gate: whether a revision is worse than another one by more than is tolerated."""

from enum import StrEnum
from typing import Literal

from pydantic import field_validator

from webdyno.core.base import Amount, Count, Interval, Model
from webdyno.core.explain import Explanation
from webdyno.core.metrics import MetricName
from webdyno.core.testbed import Machine
from webdyno.core.text import Prose

BASELINE, BASELINE_AGAIN, HEAD = "baseline", "baseline again", "head"
"""The variants of a gate, in their order."""
GATE_FILE = "gate.json"
"""The answer, in the run's folder."""


class GateAnswer(StrEnum):
    """The three answers of a gate, and none where what was measured can't be believed."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


ClaimAnswer = Literal["not worse", "worse", "inconclusive", "not asked", "invalid"]
"""`not asked`: load generator or link limited all variants, so that it says nothing."""
ClaimBecause = Literal[
    "few-rounds",
    "few-samples",
    "saturated",
    "within-limit",
    "beyond-limit",
    "baseline-differs",
    "wide-interval",
    "not-confirmed",
    "invalidated",
]
"""What a claim's answer rests on: too few valid rounds, too few responses for a percentile, a load
generator or link at its limit; the whole CI to one side of the limit; copies of the baseline that
differ, a CI with the limit in it, a failure that wasn't there when measured again, or a broken rule
of validity."""


class GateClaim(Model):
    """That head isn't worse than the baseline by more than is tolerated.

    One metric at one endpoint.
    """

    endpoint: str
    metric: MetricName
    tolerance: float
    """As a share of the baseline's value; never less than what the metric's floor makes of it."""
    answer: ClaimAnswer
    because: ClaimBecause
    """What the answer rests on."""
    rule: str = ""
    """The rule of validity that was broken, where that is why."""
    why: Prose
    """The same in words, with figures."""
    worse: Interval | None
    """How many times worse head is, above 1 being worse: bounds that hold however often was looked,
    interference counted in the worst case; None while there are too few rounds."""
    noise: float | None
    """How far from each other the two equal baselines came out, as a share, with 95% confidence."""
    baseline: float | None
    head: float | None
    """Geometric means over rounds, in the metric's unit."""
    rounds: Count

    @field_validator("worse")
    @classmethod
    def _is_a_ratio(cls, worse: Interval | None) -> Interval | None:
        """Refuse what no measurement gives, as a file of somebody else's may have it."""
        if worse and not (0 <= worse.low <= worse.high and worse.high > 0):
            raise ValueError("a claim's `worse` is no confidence interval of a ratio")
        return worse


class OtherCount(Model):
    """Something that is counted per request, where both revisions differ for sure."""

    what: Prose
    """Such as `database statements per request`."""
    baseline: float
    head: float


class CostGrowth(Model):
    """What grew at an endpoint where the gate fails."""

    endpoint: str
    counted: Explanation | None
    """CPU per request by the kernel's counters, from the gate's own rounds: programs, kernel,
    interrupts. None where two valid rounds don't report both revisions."""
    sampled: Explanation | None = None
    """The same by function, from profile rounds; None where there are none."""
    rounds: Count = 0
    """Profile rounds that count."""
    others: list[OtherCount] = []
    lacking: Prose = ""
    """Why functions aren't known, or have no names; empty where they have."""


class GateJudgement(Model):
    """The answer of a gate with all that it rests on; what CI reads is made of this alone."""

    answer: GateAnswer
    headline: Prose
    baseline: str
    """What was measured as such, such as `origin/main (1a2b3c4)`."""
    head: str
    claims: list[GateClaim] = []
    notes: list[Prose] = []
    """What a reader should know: a baseline that differs from itself, what made it invalid."""
    grew: list[CostGrowth] = []
    """Of each endpoint where it fails: in what a request costs more."""
    commits: str = ""
    """The commits between both; empty where these aren't revisions."""
    repeat: str = ""
    """The command that asks again, at the endpoints where it fails, or else at all."""
    rate_rps: Amount | None = None
    """The arrival rate at which each endpoint was measured; None in a closed loop."""
    took_s: float = 0.0
    machine: Machine | None = None
    """None where nothing was measured."""

    def of(self, answer: ClaimAnswer) -> list[GateClaim]:
        """Give the claims with an answer."""
        return [claim for claim in self.claims if claim.answer == answer]
