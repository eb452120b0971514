"""What the validity rules found, put together by rule."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webdyno.model import format as text
from webdyno.model.command import as_called
from webdyno.model.judgement import Finding, Judgement
from webdyno.model.point import PointJudgement

NAMED_POINTS = 4
"""So many points are named; of more only the number is told."""


@dataclass(frozen=True)
class FindingGroup:
    """A validity rule that fired, in one arm or several, at one point or several."""

    rule: str
    severity: str
    means: str
    """For the reader."""
    told: list[str]
    """What was found and where; of many points one example."""
    remedy: str


def grouped(points: Sequence[PointJudgement]) -> list[FindingGroup]:
    """Put findings of the same rule together."""
    by_rule: dict[str, list[tuple[PointJudgement, Finding]]] = {}
    for at in points:
        for found in at.judgement.findings:
            by_rule.setdefault(found.rule, []).append((at, found))
    groups = [_group(found, len(points)) for found in by_rule.values()]
    return sorted(groups, key=lambda group: group.severity != "invalid")


def _group(found: Sequence[tuple[PointJudgement, Finding]], points: int) -> FindingGroup:
    at_worst, worst = next((it for it in found if it[1].severity == "invalid"), found[0])
    whats = list(dict.fromkeys(as_called(each.what) for _, each in found))
    return FindingGroup(
        rule=worst.rule,
        severity=worst.severity,
        means=_meaning(worst, at_worst.judgement),
        told=whats
        if points == 1
        else [*_places(found, points), f"for example: {as_called(worst.what)}"],
        remedy=as_called(worst.remedy),
    )


def _places(found: Sequence[tuple[PointJudgement, Finding]], points: int) -> Iterator[str]:
    """Say for each arm at which points a rule fired."""
    by_arm: dict[str | None, dict[str, None]] = {}
    for at, each in found:
        by_arm.setdefault(each.arm, {})[text.levels_text(at.point.levels)] = None
    for arm, labels in by_arm.items():
        every = len(labels) == points
        at_points = f"at all {points} points" if every else f"at {len(labels)} of {points} points"
        named = not every and len(labels) <= NAMED_POINTS
        yield f"{arm or 'all arms'} {at_points}" + (f" ({'; '.join(labels)})" if named else "")


def _meaning(found: Finding, judgement: Judgement) -> str:
    """Say what a finding means for the reader."""
    if found.severity == "note":
        return "to keep in mind"
    if not found.metrics:
        return "no verdict"
    labels = [metric.label for metric in judgement.metrics if metric.name in found.metrics]
    return f"no verdict on {'; '.join(labels)}"
