"""What terminal and page both show of a sweep."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from webdyno.model.judgement import Finding, Metric, Verdict
from webdyno.model.point import PointJudgement, SweepJudgement
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.evidence import MetricEvidence, Row, evidence, weight
from webdyno.report.facts import Facts

NAMED_POINTS = 4
"""So many points are named; of more only the number is told."""


@dataclass(frozen=True)
class PointEvidence:
    """One point's part of the table: its levels as shown, and all arms on the deciding metric."""

    levels: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class SweepEvidence:
    """The deciding metric at every point."""

    metric: Metric
    factors: list[str]
    """As shown, in the experiment's order."""
    points: list[PointEvidence]
    by_metric: list[MetricEvidence]
    """The deciding metric at each point that has any evidence."""


@dataclass(frozen=True)
class GroupedFinding:
    """A rule that fired at one point or several."""

    first: Finding
    severity: str
    means: str
    """For the reader, where it fired."""
    where: list[str]
    """One text for each arm concerned."""


def sweep_evidence(head: RunHead, sweep: SweepJudgement) -> SweepEvidence | None:
    """Give the table of a sweep; None when nothing was measured at any point."""
    decide_on = head.experiment.measure.decide_on
    found = [(at, _deciding(head, at)) for at in sweep.points]
    by_metric = [metric for _, metric in found if metric]
    if not by_metric:
        return None
    return SweepEvidence(
        metric=next(m for m in sweep.points[0].judgement.metrics if m.name == decide_on),
        factors=list(text.factor_names(head.experiment.factors).values()),
        points=[
            PointEvidence(list(map(text.level, at.point.levels.values())), metric.rows)
            for at, metric in found
            if metric
        ],
        by_metric=by_metric,
    )


def _deciding(head: RunHead, at: PointJudgement) -> MetricEvidence | None:
    return next((it for it in evidence(head, at.judgement) if it.decides), None)


def verdict_counts(head: RunHead, sweep: SweepJudgement) -> dict[Verdict, int]:
    """Count the verdicts on the deciding metric over all points and arms, most frequent first."""
    decide_on = head.experiment.measure.decide_on
    counts = Counter(
        found.verdict
        for at in sweep.points
        for found in at.judgement.comparisons
        if found.metric == decide_on
    )
    return dict(counts.most_common())


def grouped_findings(sweep: SweepJudgement) -> list[GroupedFinding]:
    """Put findings of the same rule together; those that spoil a verdict come first."""
    by_rule: dict[str, list[tuple[PointJudgement, Finding]]] = {}
    for at in sweep.points:
        for found in at.judgement.findings:
            by_rule.setdefault(found.rule, []).append((at, found))
    groups = [_group(found, len(sweep.points)) for found in by_rule.values()]
    return sorted(groups, key=lambda group: group.severity != "invalid")


def _group(found: Sequence[tuple[PointJudgement, Finding]], total: int) -> GroupedFinding:
    at_worst, worst = next((it for it in found if it[1].severity == "invalid"), found[0])
    places: dict[str | None, list[str]] = {}
    for at, each in found:
        label = text.levels(at.point.levels)
        if label not in places.setdefault(each.arm, []):
            places[each.arm].append(label)
    return GroupedFinding(
        first=worst,
        severity=worst.severity,
        means=weight(worst, at_worst.judgement),
        where=[_where(arm, labels, total) for arm, labels in places.items()],
    )


def _where(arm: str | None, labels: list[str], total: int) -> str:
    at = f"at all {total} points" if len(labels) == total else f"at {len(labels)} of {total} points"
    named = f" ({'; '.join(labels)})" if len(labels) <= min(NAMED_POINTS, total - 1) else ""
    return f"{arm or 'all arms'} {at}{named}"


def factor_facts(head: RunHead) -> Facts:
    """Tell what was varied."""
    names = text.factor_names(head.experiment.factors)
    varied = "; ".join(
        f"{names[key]}: {', '.join(map(text.level, levels))}"
        for key, levels in head.experiment.factors.items()
    )
    points = 1
    for levels in head.experiment.factors.values():
        points *= len(levels)
    how = "every combination; they take turns, a block each, in random order"
    return [("Varied", varied), ("Points", f"{points}, {how}")]
