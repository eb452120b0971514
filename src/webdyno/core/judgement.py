"""What the judge says of a run: verdicts, always with their evidence."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from webdyno.core.base import Interval, Model
from webdyno.core.findings import (
    CostAtRate,
    CostAtRest,
    Effect,
    Elasticity,
    Explanation,
    Gain,
    Overload,
    Saturation,
    Waiting,
)
from webdyno.core.looks import LongLook
from webdyno.core.records import StopReason
from webdyno.core.text import Prose


class Verdict(StrEnum):
    """The answers to "is A different from B?"; INCOMPLETE: nothing was measured.

    MEASURED: the capacity of a variant that is compared with none.
    """

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"
    MEASURED = "measured"


DIFFERENT = {Verdict.FASTER, Verdict.SLOWER}
"""The verdicts that say which one is ahead."""
DECIDED = DIFFERENT | {Verdict.EQUIVALENT}


class Metric(Model):
    """A quantity that is compared: its name in records, its words for people and its direction."""

    name: str
    label: Prose
    unit: str
    better: Literal["higher", "lower"]
    floor: float = 0.0
    """Differences of less than this, in the metric's unit, don't matter, whatever their ratio."""


class QuantileRange(Model):
    """95% interval of a quantile of one round's responses; None: too few for that end."""

    low: float | None
    high: float | None


class VariantValue(Model):
    """One metric of one variant over all rounds."""

    variant: str
    metric: str
    by_round: list[float]
    rounds: list[int] = []
    """The round numbers of `by_round`."""
    interval: Interval | None
    """Of the geometric mean over rounds; None with fewer than two rounds."""
    within_rounds: list[QuantileRange] = []
    """For percentiles, by round: by the order statistics of its responses."""


LimitedBy = Literal["client", "link", "load"]
"""What kept a variant from being faster; of a capacity `load`: its connections were used up."""


class Bias(Model):
    """How far a cause can have moved a metric of a variant at most, as factors of at least 1."""

    cause: str
    variant: str
    too_low: float | None
    """The truth is at most this many times what was measured; None: nobody knows how many."""
    too_high: float | None
    """What was measured is at most this many times the truth; None: nobody knows how many."""


class OneSidedAnswer(Model):
    """The answer to a question in one direction; its bounds hold however often the run looked."""

    question: str
    """`faster`, or `not-slower-by 5%`."""
    answer: Literal["yes", "no", "inconclusive"]
    at_least: float
    """Ratio of gain (above 1 is better) that is exceeded with 95% confidence."""
    at_most: float
    """Ratio of gain that isn't exceeded with 95% confidence."""
    why: Prose


Because = Literal[
    "no-round",
    "few-rounds",
    "within-threshold",
    "below-floor",
    "beyond-threshold",
    "too-noisy",
    "wide-interval",
    "exact-test",
    "near-threshold",
    "interference",
    "invalidated",
    "no-rank",
]
"""What a verdict rests on. Equivalent: the whole CI lies within ±delta (`within-threshold`) or
within the metric's floor (`below-floor`). Faster and slower: `beyond-threshold`. Inconclusive: too
few rounds; copies of one variant differ too much; the CI has both in it, no difference and a large
one; the exact test doesn't agree; the CI has no difference excluded, and reaches below delta; or
interference could explain it. Invalid: a rule of validity is broken, or a ranking has no place for
the variant."""


class ClearFact(Model):
    """What another metric says clearly where the deciding one leaves a comparison open."""

    metric: str
    verdict: Verdict
    ratio: Interval
    """That its verdict rests on."""


class Comparison(Model):
    """Variant `a` against baseline `b` on one metric. Ratios are value(a) / value(b)."""

    metric: str
    a: str
    b: str
    ratio: Interval | None
    """None when there are too few rounds for an interval."""
    by_round: list[float]
    rounds: list[int] = []
    """The round numbers of `by_round`."""
    method: Literal["t", "hodges-lehmann"] = "t"
    """How the interval was made: hodges-lehmann where the ratios are heavy-tailed."""
    sign_flip_p: float | None
    """Two-sided p of the exact sign-flip test that the ratio is 1."""
    same_variant: bool = False
    """True when both variants are defined alike (A/A): whatever they differ by is the noise
    here."""
    delta: float
    """Ratios within 1/(1 + delta) to 1 + delta count as equivalent."""
    negligible: bool = False
    """True when the variants differ by less than the metric's floor: whatever the ratio,
    `equivalent`. """
    verdict: Verdict
    """`faster` means that a is better on this metric, whether more or less is better."""
    because: Because
    """What the verdict rests on."""
    why: Prose
    """The same in words, with figures."""
    worst_case: Interval | None = None
    """The worst-case CI: with all `biases` counted against the verdict, which rests on it; None
    where there are no biases."""
    biases: list[Bias] = []
    """Interference with the variants, or what hadn't settled, and how far that can have moved
    them."""
    tipping: Prose | None = None
    """How much interference it would take to change the verdict, and how much there was."""
    sampling_verdict: Verdict | None = None
    """The verdict by the sampling CI, without the biases."""
    rules_out: Prose | None = None
    """Between which ends the difference lies, where inconclusive or equivalent."""
    one_sided: OneSidedAnswer | None = None
    """Where a question in one direction was asked of this metric."""
    limited_by: dict[str, LimitedBy] = {}
    """By variant: what limited its throughput or capacity, which is at least what was measured."""
    reason: Prose | None = None
    """What held both variants back alike, where that is known, such as a full link."""
    later: Prose | None = None
    """How much of the ratio comes from what only long looks saw, such as stalls."""
    costs: list[CostAtRate] = []
    """Of CPU time at a given arrival rate: what a and b cost."""
    clear: ClearFact | None = None
    """Where inconclusive: what another metric says clearly."""
    alone: Interval | None = None
    """The interval on a machine without others' work, where that may be another one."""
    more_rounds: int | None = None
    """Where inconclusive: rounds still needed, estimated from the spread so far."""
    more_minutes: float | None = None

    @property
    def decisive(self) -> Interval | None:
        """The interval that the verdict rests on: in the worst case of interference.

        Where the faster variant was client-limited it has only one end, and that may suffice.
        """
        return self.worst_case or self.ratio

    @property
    def needs_rounds(self) -> bool:
        """Whether there are too few rounds for a verdict, whatever they show."""
        return self.because == "few-rounds"

    @property
    def is_beyond_client(self) -> bool:
        """Whether client or load limited both: neither shows what it can do."""
        return len(self.limited_by) == 2 and "link" not in self.limited_by.values()


class ValidityWarning(Model):
    """A validity rule that fired: what is wrong, why it matters, what to do."""

    rule: str
    """Short stable name, such as `non-2xx`."""
    severity: Literal["invalid", "note"]
    variant: str | None
    what: Prose
    """With figures: `variant apache: 14 200 of 14 200 responses to /x were 404`."""
    fix: Prose
    metrics: list[str] = []
    """The metrics that it invalidates; all of them when empty."""

    def invalidates(self, metric: str, variants: Sequence[str]) -> bool:
        """Return whether it makes figures of some variants on a metric invalid."""
        return (
            self.severity == "invalid"
            and (not self.metrics or metric in self.metrics)
            and self.variant in {None, *variants}
        )


class ExcludedSlot(Model):
    """A measured slot that broke a validity rule.

    Kept in the records, excluded from comparisons.
    """

    round: int
    slot: int
    variant: str
    rule: str
    metrics: list[str] = []
    """The metrics that it is excluded from; all of them when empty."""


class VarianceSplit(Model):
    """Where a variant's noise comes from, and how to spend time best against it."""

    variant: str
    metric: str
    restart_sd: float
    """Standard deviation of ln(value) between fresh starts of the servers."""
    slot_sd: float
    """The same between slots of one start."""
    slots_per_variant: int
    """How many slots a round should have for the narrowest interval in a given time."""


class VariantFacts(Model):
    """What else was counted of a variant and belongs to no metric."""

    variant: str
    ready_s: float | None
    """From the start of its servers to the first valid response: the median of all rounds."""
    hit_share: dict[str, float] = {}
    """By role, of services that count it: share of the keys asked for that were found, 0 to 1."""


class EndpointFigures(Model):
    """What one variant did with the requests of an endpoint, over all rounds."""

    variant: str
    completed: int
    failed: int
    throughput_rps: float
    p50_us: float | None
    p99_us: float | None


class EndpointJudgement(Model):
    """The variants at one endpoint: their median latency there."""

    endpoint: str
    metric: Metric
    figures: list[EndpointFigures]
    """By variant, in their order."""
    variants: list[VariantValue]
    comparisons: list[Comparison]
    """Of all endpoints and variants together the chance of a false difference is 5% (Holm)."""


class Rank(Model):
    """Where a variant stands in a ranking: between these ranks, of which 1 is the best."""

    variant: str
    best: int
    """One more than there are variants that are better with 95% confidence."""
    worst: int
    """The number of variants less those that are worse with 95% confidence."""


class Ranking(Model):
    """The ranks of all variants; with 95% confidence all of them hold together."""

    ranks: list[Rank]
    """The best first."""
    out: dict[str, Prose] = {}
    """Variants without a rank, and why."""
    pairs: list[Comparison] = []
    """Each two variants, both ways round."""
    looks: int
    """How often the ranks were looked at."""

    @property
    def is_unmeasured(self) -> bool:
        """Whether there are variants to rank, but no round of them yet."""
        nothing = [pair.verdict is Verdict.INCOMPLETE for pair in self.pairs]
        return bool(nothing) and all(nothing)


class Judgement(Model):
    """The whole answer to the experiment's question."""

    verdict: Verdict
    """On the experiment's deciding metric."""
    headline: Prose
    """The answer in one sentence."""
    metrics: list[Metric]
    variants: list[VariantValue]
    comparisons: list[Comparison]
    warnings: list[ValidityWarning]
    variance: list[VarianceSplit] = []
    """Of the deciding metric, by variant; empty before there are two rounds."""
    excluded: list[ExcludedSlot] = []
    """Slots that count for nothing, or not for every metric."""
    looks: list[LongLook] = []
    """What one long stretch of load on each variant showed, where there was one."""
    facts: list[VariantFacts] = []
    """By variant; empty before there is a round."""
    endpoints: list[EndpointJudgement] = []
    """Where several were requested, each by itself."""
    ranking: Ranking | None = None
    """Where ranks were requested. The comparisons are then against the first of them."""
    explanations: list[Explanation] = []
    """What differences of CPU per request are made of."""
    waiting: list[Waiting] = []
    """What the time of each variant's responses is made of, where that can be known."""
    saturation: list[Saturation] = []
    """What was saturated just below each variant's capacity, where that was searched for."""
    costs: list[CostAtRate] = []
    """What each variant costs, where the load has a given rate and CPU time decides."""
    at_rest: list[CostAtRest] = []
    """What each variant uses while nobody asks, where that was measured."""
    overloads: list[Overload] = []
    """What each variant did at multiples of its capacity, where that was tried."""
    effects: list[Effect] = []
    """What each setting does, where variants have them in a design's combinations."""
    elasticities: list[Elasticity] = []
    """What limits the baseline, where variants have less of something."""
    gains: list[Gain] = []
    """What other settings are worth to the baseline, where variants have one each."""
    stop_reason: StopReason | None = None
    """Why no more was measured; None where measuring was interrupted or goes on."""
    stopped_because: Prose | None = None
    """The same in words."""
    rounds: int
    """Finished rounds that counted."""

    @property
    def excluded_count(self) -> int:
        """How many slots count for nothing, or not for every metric, whatever rules they broke."""
        return len({(slot.round, slot.slot) for slot in self.excluded})
