"""What terminal and page both show: the evidence behind a verdict, in the order of reading."""

from dataclasses import dataclass
from math import ceil

from webdyno.model.experiment import Experiment
from webdyno.model.judgement import ArmValue, Comparison, Finding, Judgement, Metric, Verdict
from webdyno.model.run import RunHead
from webdyno.report import text

SIGNS = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.UNDECIDED: "?",
    Verdict.INVALID: "✕",
}
"""A verdict is never told by colour alone."""


@dataclass(frozen=True)
class Row:
    """One arm on one metric."""

    arm: str
    value: ArmValue | None
    comparison: Comparison | None
    """None for the baseline, and for all arms of a run that ended too early."""


@dataclass(frozen=True)
class MetricEvidence:
    """One metric: its arms beside each other."""

    metric: Metric
    decides: bool
    rows: list[Row]

    @property
    def label(self) -> str:
        """The metric's words for people, as a heading."""
        return metric_label(self.metric)

    @property
    def title(self) -> str:
        """The label with the metric's unit, where the words don't imply it."""
        return metric_title(self.metric)

    @property
    def compared(self) -> list[Comparison]:
        """The comparisons of this metric for which there is a ratio."""
        found = [row.comparison for row in self.rows if row.comparison]
        return [comparison for comparison in found if comparison.ratio]


def metric_label(metric: Metric) -> str:
    """Give a metric's words for people, as a heading."""
    return metric.label[:1].upper() + metric.label[1:]


def metric_title(metric: Metric) -> str:
    """Give the label with the metric's unit, where it has one that the words don't imply."""
    implied = metric.unit in {"requests/s", ""}
    return metric_label(metric) if implied else f"{metric_label(metric)}, {metric.unit}"


def evidence(head: RunHead, judgement: Judgement) -> list[MetricEvidence]:
    """Give the metrics that were measured, the deciding one first; the baseline comes last."""
    decide_on = head.experiment.measure.decide_on
    values = {(value.metric, value.arm): value for value in judgement.arms}
    comparisons = {(found.metric, found.a): found for found in judgement.comparisons}
    baseline = baseline_of(head.experiment, judgement)
    arms = sorted(head.experiment.arms, key=lambda arm: arm == baseline)
    measured = {value.metric for value in judgement.arms if value.by_block}
    return [
        MetricEvidence(
            metric=metric,
            decides=metric.name == decide_on,
            rows=[
                Row(arm, values.get((metric.name, arm)), comparisons.get((metric.name, arm)))
                for arm in arms
            ],
        )
        for metric in sorted(judgement.metrics, key=lambda metric: metric.name != decide_on)
        if metric.name in measured
    ]


def baseline_of(experiment: Experiment, judgement: Judgement) -> str:
    """Give the arm against which the others were compared."""
    return judgement.comparisons[0].b if judgement.comparisons else next(iter(experiment.arms))


def verdict_word(verdict: Verdict, *, decides: bool) -> str:
    """Give a verdict in a word; beside the deciding metric, less CPU time isn't `faster`."""
    if decides:
        return str(verdict)
    return {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}.get(verdict, str(verdict))


def confidence(metrics: list[MetricEvidence]) -> str:
    """Name the confidence of the ratios' intervals: `95 %`, or `95–98.3 %` where it differs.

    It differs with several arms, where Holm's correction asks more of the clearer differences.
    """
    levels = {found.ratio.confidence for it in metrics for found in it.compared if found.ratio}
    low, high = min(levels, default=0.95), max(levels, default=0.95)
    return text.percent(low) if low == high else f"{100 * low:.3g}{text.DASH}{text.percent(high)}"


def headline_sentences(judgement: Judgement) -> list[str]:
    """Give the headline, with several arms a sentence for each."""
    arms = {found.a for found in judgement.comparisons}
    return judgement.headline.split("; ") if len(arms) > 1 else [judgement.headline]


def still_needed(comparison: Comparison) -> str | None:
    """Say how much more measuring an undecided comparison needs, where that is known."""
    if comparison.verdict is not Verdict.UNDECIDED or comparison.more_blocks is None:
        return None
    needed = f"about {text.count(comparison.more_blocks, 'more block')}"
    if comparison.more_minutes is not None:
        needed += f" ({ceil(comparison.more_minutes)}{text.THIN}min)"
    return needed


def weight(found: Finding, judgement: Judgement) -> str:
    """Say what a finding means for the reader."""
    if found.severity == "note":
        return "to keep in mind"
    if not found.metrics:
        return "no verdict"
    labels = [metric.label for metric in judgement.metrics if metric.name in found.metrics]
    return f"no verdict on {'; '.join(labels)}"
