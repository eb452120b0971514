"""Limits on how much worse a variant may be: `--fail-if`, and a gate's claims and answer."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, field_validator

from webdyno.core.base import Amount, Count, Interval, Model
from webdyno.core.experiment import Experiment
from webdyno.core.findings import Explanation
from webdyno.core.format import ratio_range
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.metrics import METRICS, MetricName
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
    needs_s: Annotated[float | None, Field(exclude=True, allow_inf_nan=True)] = None
    """How much more time would decide it, by the noise seen; infinite where none would, None where
    nothing says so."""
    machine: Machine | None = None
    """None where nothing was measured."""

    def of(self, answer: ClaimAnswer) -> list[GateClaim]:
        """Return the claims with an answer."""
        return [claim for claim in self.claims if claim.answer == answer]


SHORT = {
    "cpu": "server_cpu_us",
    "throughput": "throughput_rps",
    "p50": "latency_p50_us",
    "p99": "latency_p99_us",
    "memory": "memory_mib",
    "ttft": "first_event_p50_us",
    "itl": "event_gap_p50_us",
    "tpot": "per_event_p50_us",
    "tokens": "events_per_s",
    "goodput": "goodput_rps",
}
"""What metrics are called in limits, next to their own names."""
EXAMPLE = "such as 'p99 > +5%' or 'throughput < -5%'"
_LIMIT = re.compile(r"(?P<about>[^<>]+)(?P<sign>[<>])\s*+(?P<amount>[+-]\d+(?:\.\d+)?)\s*+%\s*+")

Holds = Literal["yes", "no", "inconclusive"]


class Limit(NamedTuple):
    """That a variant is above or below the baseline by more than a share on a metric."""

    text: str
    """As it is written."""
    variant: str
    """Empty where all are meant that are compared with the baseline."""
    metric: str
    above: bool
    share: float
    """Of the baseline's value; negative below it."""

    def holds(self, comparison: Comparison) -> Holds:
        """Return whether it surely holds: over the whole worst-case CI."""
        interval = comparison.decisive
        if interval is None or comparison.verdict is Verdict.INVALID:
            return "inconclusive"
        bound = 1 + self.share
        surely = interval.low > bound if self.above else interval.high < bound
        surely_not = interval.high <= bound if self.above else interval.low >= bound
        return "yes" if surely else "no" if surely_not else "inconclusive"


@dataclass(frozen=True)
class LimitAnswer:
    """A limit at one point, and what was found there."""

    limit: Limit
    holds: Holds
    ratio: str


def read_limit(text: str) -> Limit:
    """Read `p99 > +5%` or `nginx.cpu < -5%`; raise ValueError for what is neither."""
    parts = _LIMIT.fullmatch(text)
    if parts is None:
        raise ValueError(f"should look like METRIC > +PERCENT, {EXAMPLE}")
    about, share = parts["about"].strip(), float(parts["amount"]) / 100
    variant, _, name = ("", "", about) if _metric(about) else about.rpartition(".")
    metric = _metric(name.strip())
    if metric is None:
        known = f"{', '.join(SHORT)}, and others by their names, such as first_event_p50_us"
        raise ValueError(f"there is no metric {name!r}; there are {known}")
    if share <= -1:
        raise ValueError("nothing is less by 100% or more")
    return Limit(text.strip(), variant.strip(), metric, parts["sign"] == ">", share)


def read_limits(text: str, experiment: Experiment) -> list[Limit]:
    """Read a limit of an experiment's variants; raise ValueError for what it can't be."""
    limit = read_limit(text)
    baseline, *others = experiment.variants
    if limit.variant == baseline:
        raise ValueError(
            f"{limit.variant} is the baseline; name a variant that is compared with it"
        )
    if limit.variant and limit.variant not in others:
        raise ValueError(f"there is no variant {limit.variant!r}; there are {', '.join(others)}")
    variants = [limit.variant] if limit.variant else others
    return [limit._replace(variant=variant) for variant in variants]


def _metric(name: str) -> str | None:
    metric = SHORT.get(name, name)
    return metric if metric in METRICS else None


def limit_answers(limits: Sequence[Limit], judgements: Iterable[Judgement]) -> list[LimitAnswer]:
    return [_answer(limit, judged) for judged in judgements for limit in limits]


def _answer(limit: Limit, judged: Judgement) -> LimitAnswer:
    for comparison in judged.comparisons:
        if (comparison.a, comparison.metric) == (limit.variant, limit.metric):
            interval = comparison.decisive
            ratio = f"{comparison.a} to {comparison.b}: {ratio_range(interval)}" if interval else ""
            return LimitAnswer(limit, limit.holds(comparison), ratio)
    return LimitAnswer(limit, "inconclusive", "")
