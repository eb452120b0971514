"""What the judge says of a run: verdicts, always with their evidence."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from webdyno.model.base import Interval, Model
from webdyno.model.long_look import LongLook
from webdyno.model.why import Effect, Elasticity, Explanation, Gain, Saturation, Waiting


class Verdict(StrEnum):
    """The answers to "is A different from B?"; INCOMPLETE: nothing was measured.

    MEASURED: the capacity of an arm that is compared with none.
    """

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"
    MEASURED = "measured"


class Metric(Model):
    """A quantity that is compared: its name in records, its words for people and its direction."""

    name: str
    label: str
    unit: str
    better: Literal["higher", "lower"]
    floor: float = 0.0
    """Differences of less than this, in the metric's unit, don't matter, whatever their ratio."""


class QuantileRange(Model):
    """95% interval of a quantile of one block's answers; None: too few for that end."""

    low: float | None
    high: float | None


class ArmValue(Model):
    """One metric of one arm over all blocks."""

    arm: str
    metric: str
    by_block: list[float]
    blocks: list[int] = []
    """The block numbers of `by_block`."""
    interval: Interval | None
    """Of the geometric mean over blocks; None with fewer than two blocks."""
    within_blocks: list[QuantileRange] = []
    """For percentiles, by block: by the order statistics of its answers."""


LimitedBy = Literal["client", "link"]
"""What kept an arm from being faster."""


class Bias(Model):
    """How far a cause can have moved a metric of an arm at most, as factors of at least 1."""

    cause: str
    arm: str
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
    why: str


class Comparison(Model):
    """Arm `a` against baseline `b` on one metric. Ratios are value(a) / value(b)."""

    metric: str
    a: str
    b: str
    ratio: Interval | None
    """None when there are too few blocks for an interval."""
    by_block: list[float]
    blocks: list[int] = []
    """The block numbers of `by_block`."""
    method: Literal["t", "hodges-lehmann"] = "t"
    """How the interval was made: hodges-lehmann where the ratios are heavy-tailed."""
    sign_flip_p: float | None
    """Two-sided p of the exact sign-flip test that the ratio is 1."""
    same_arm: bool = False
    """True when both arms are defined alike (A/A): whatever they differ by is the noise here."""
    delta: float
    """Ratios within 1/(1 + delta) to 1 + delta count as equivalent."""
    negligible: bool = False
    """True when the arms differ by less than the metric's floor: whatever the ratio, `equivalent`.
    """
    verdict: Verdict
    """`faster` means that a is better on this metric, whether more or less is better."""
    why: str
    """What the verdict rests on."""
    bounded: Interval | None = None
    """The interval with all `biases` counted against the verdict, which rests on this one; None
    where there are no biases."""
    biases: list[Bias] = []
    """What disturbed the arms or hadn't settled, and how far that can have moved them."""
    tipping: str | None = None
    """How much of disturbance it would take to turn the verdict, and how much there was."""
    as_measured: Verdict | None = None
    """The verdict by the interval as measured, without the biases."""
    rules_out: str | None = None
    """How large a difference there can't be, where inconclusive or equivalent."""
    one_sided: OneSidedAnswer | None = None
    """Where a question in one direction was asked of this metric."""
    limited_by: dict[str, LimitedBy] = {}
    """By arm: what its rate was limited by; it is at least what was measured."""
    reason: str | None = None
    """What held both arms back alike, where that is known, such as a full link."""
    later: str | None = None
    """How much of the ratio comes from what only long looks saw, such as stalls."""
    clear_beside: str | None = None
    """Where inconclusive: what another metric says clearly, in words."""
    more_blocks: int | None = None
    """Where inconclusive: blocks still needed, estimated from the spread so far."""
    more_minutes: float | None = None

    @property
    def sure(self) -> Interval | None:
        """The interval that the verdict rests on: with all that disturbed the run counted in.

        Where the faster arm was client-limited it has only one end, and that may suffice.
        """
        return self.bounded or self.ratio

    @property
    def is_beyond_client(self) -> bool:
        """Whether both were client-limited: neither shows what it can do."""
        return list(self.limited_by.values()) == ["client", "client"]


class ValidityWarning(Model):
    """A validity rule that fired: what is wrong, why it matters, what to do."""

    rule: str
    """Short stable name, such as `non-2xx`."""
    severity: Literal["invalid", "note"]
    arm: str | None
    what: str
    """With figures: `arm apache: 14 200 of 14 200 answers to /x were 404`."""
    fix: str
    metrics: list[str] = []
    """The metrics that it invalidates; all of them when empty."""

    def invalidates(self, metric: str, arms: Sequence[str]) -> bool:
        """Tell whether it makes figures of some arms on a metric invalid."""
        return (
            self.severity == "invalid"
            and (not self.metrics or metric in self.metrics)
            and self.arm in {None, *arms}
        )


class ExcludedSlot(Model):
    """A measured slot that broke a validity rule.

    Kept in the records, excluded from comparisons.
    """

    block: int
    slot: int
    arm: str
    rule: str
    metrics: list[str] = []
    """The metrics that it is excluded from; all of them when empty."""


class VarianceSplit(Model):
    """Where an arm's noise comes from, and how to spend time best against it."""

    arm: str
    metric: str
    restart_sd: float
    """Standard deviation of ln(value) between fresh starts of the servers."""
    slot_sd: float
    """The same between slots of one start."""
    slots_per_arm: int
    """How many slots a block should have for the narrowest interval in a given time."""


class ArmFacts(Model):
    """What else was counted of an arm and belongs to no metric."""

    arm: str
    ready_s: float | None
    """From the start of its servers to the first right answer: the median of all blocks."""
    hit_share: dict[str, float] = {}
    """By role, of services that count it: share of the keys asked for that were found, 0 to 1."""


class EndpointFigures(Model):
    """What one arm did with the requests of an endpoint, over all blocks."""

    arm: str
    completed: int
    failed: int
    rate_rps: float
    p50_us: float | None
    p99_us: float | None


class EndpointJudgement(Model):
    """The arms at one endpoint: their median response times there."""

    endpoint: str
    metric: Metric
    figures: list[EndpointFigures]
    """By arm, in their order."""
    arms: list[ArmValue]
    comparisons: list[Comparison]
    """Of all endpoints and arms together the chance of a false difference is 5% (Holm)."""


class LeaguePlace(Model):
    """Where an arm stands in a league: between these places, of which 1 is the best."""

    arm: str
    best: int
    """One more than there are arms that are better with 95% confidence."""
    worst: int
    """The number of arms less those that are worse with 95% confidence."""


class League(Model):
    """The places of all arms; with 95% confidence all of them hold together."""

    places: list[LeaguePlace]
    """The best first."""
    out: dict[str, str] = {}
    """Arms without a place, and why."""
    pairs: list[Comparison] = []
    """Each two arms, both ways round."""
    looks: int
    """How often the places were looked at."""


class Judgement(Model):
    """The whole answer to the experiment's question."""

    verdict: Verdict
    """On the experiment's deciding metric."""
    headline: str
    """The answer in one sentence."""
    metrics: list[Metric]
    arms: list[ArmValue]
    comparisons: list[Comparison]
    warnings: list[ValidityWarning]
    variance: list[VarianceSplit] = []
    """Of the deciding metric, by arm; empty before there are two blocks."""
    excluded: list[ExcludedSlot] = []
    """Slots that count for nothing, or not for every metric."""
    looks: list[LongLook] = []
    """What one long stretch of load on each variant showed, where there was one."""
    facts: list[ArmFacts] = []
    """By arm; empty before there is a block."""
    endpoints: list[EndpointJudgement] = []
    """Where several were asked for, each by itself."""
    league: League | None = None
    """Where places were asked for. The comparisons are then against the first of them."""
    explanations: list[Explanation] = []
    """What differences of CPU time per request are made of."""
    waiting: list[Waiting] = []
    """What the time of each arm's answers is made of, where that can be told."""
    saturation: list[Saturation] = []
    """What was saturated just below each arm's capacity, where that was searched for."""
    effects: list[Effect] = []
    """What each setting does, where arms have them in a design's combinations."""
    elasticities: list[Elasticity] = []
    """What limits the baseline, where arms have less of something."""
    gains: list[Gain] = []
    """What other settings are worth to the baseline, where arms have one each."""
    stopped_because: str | None = None
    """Why no more was measured, in words; None where measuring was interrupted or goes on."""
    blocks: int
    """Finished blocks that counted."""
