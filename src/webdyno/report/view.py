"""Judges a run, and puts what people see of it in order, once for terminal and page.

A plain run is a sweep of one point: whatever is shown is a list over points, and what has to be
said of several points only is excluded where there is one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webdyno.comparison import judge_sweep, question_of
from webdyno.core import format as text
from webdyno.core.judgement import Comparison, Judgement, ValidityWarning, VariantValue, Verdict
from webdyno.core.registry import SHOWS as SHOWN_BY
from webdyno.core.registry import as_called, import_part, question_parts
from webdyno.core.run import RunHead
from webdyno.core.sweep import PointJudgement, SweepJudgement
from webdyno.evidence.point_data import PointData, RunData
from webdyno.media.document import Callout
from webdyno.report.conditions import factor_facts, how_measured
from webdyno.report.headlines import answers
from webdyno.report.show import MetricTable, PointView, Row, RunView, Show, WholeAnswer, first

SHOWS: list[Show] = [import_part(part)() for part in SHOWN_BY]
"""All of them, in the order in which they are read."""


def whole_of(run: RunData) -> WholeAnswer | None:
    """Return the one answer for all points of a run, where its question has one."""
    experiment = run.head.experiment
    answer = question_of(experiment).judge_all_points(run)
    if answer is None:
        return None
    shown = question_parts(experiment.asks.key).whole
    whole: WholeAnswer = import_part(shown)(answer, experiment.measure.max_rounds)
    return whole


class JudgedRun(NamedTuple):
    """A run as it was judged, and how it is shown."""

    judged: SweepJudgement
    view: RunView


def see(run: RunData) -> JudgedRun:
    """Judge a run."""
    judged = judge_sweep(run)
    return JudgedRun(judged, run_view(run, judged))


def run_view(run: RunData, judged: SweepJudgement) -> RunView:
    """Put a run's records and judgements in the order in which they are shown."""
    head = run.head
    points = [
        _point(judged_point, data)
        for judged_point, data in zip(judged.points, run.points, strict=True)
    ]
    several = len(points) > 1
    whole = whole_of(run)
    verdicts = (comparison.verdict for point in points for comparison in point.on_deciding)
    return RunView(
        head=head,
        points=points,
        answers=[] if several or whole else answers(points[0]),
        counts=dict(Counter(verdicts).most_common()),
        sentences=judged.sentences if several and not whole else [],
        warnings=group_warnings(judged.points),
        factors=list(text.factor_names(head.experiment.factors).values()),
        how=factor_facts(head.experiment)
        + how_measured(run, [point.judgement for point in judged.points]),
        shows=SHOWS,
        whole=whole,
    )


def _point(judged: PointJudgement, data: PointData) -> PointView:
    head = data.head
    ranks = first(show.ranks(judged.judgement) for show in SHOWS)
    # The ranks of several points differ, and variants look alike at all of them.
    by_rank = ranks or {} if not judged.point.levels else {}
    variants = list(dict.fromkeys([*by_rank, *head.experiment.variants]))
    tables = _tables(head, judged.judgement, ranks)
    decide_on = data.measure.decide_on
    return PointView(
        number=judged.point.number,
        levels=judged.point.levels,
        variants=variants,
        data=data,
        judgement=judged.judgement,
        deciding=next((table for table in tables if table.metric.name == decide_on), None),
        alongside=[table for table in tables if table.metric.name != decide_on and table.informs],
        endpoints=[
            MetricTable(
                endpoint.metric, _rows(head, endpoint.variants, endpoint.comparisons, ranks)
            )
            for endpoint in judged.judgement.endpoints
        ],
        shows=SHOWS,
    )


def _tables(
    head: RunHead, judgement: Judgement, ranks: Mapping[str, str] | None
) -> list[MetricTable]:
    measured = {value.metric for value in judgement.variants if value.by_round}
    return [
        MetricTable(
            metric=metric,
            rows=_rows(
                head,
                [value for value in judgement.variants if value.metric == metric.name],
                [each for each in judgement.comparisons if each.metric == metric.name],
                ranks,
                decides=metric.name == head.experiment.measure.decide_on,
            ),
        )
        for metric in judgement.metrics
        if metric.name in measured
    ]


def _rows(
    head: RunHead,
    values: Sequence[VariantValue],
    comparisons: Sequence[Comparison],
    ranks: Mapping[str, str] | None,
    *,
    decides: bool = False,
) -> list[Row]:
    """Return the variants in the order of their ranks, or with the baseline last."""
    value_of = {value.variant: value for value in values}
    comparison_of = {comparison.a: comparison for comparison in comparisons}
    if ranks is None:
        baseline = comparisons[0].b if comparisons else next(iter(head.experiment.variants))
        variants = sorted(head.experiment.variants, key=lambda variant: variant == baseline)
        ranks = dict.fromkeys(variants, "")
    return [
        Row(variant, value_of.get(variant), comparison_of.get(variant), rank if decides else "")
        for variant, rank in ranks.items()
    ]


NAMED_POINTS = 4


def group_warnings(points: Sequence[PointJudgement]) -> list[Callout]:
    """Put warnings of the same rule together, those that invalidate a verdict first."""
    by_rule: dict[str, list[tuple[PointJudgement, ValidityWarning]]] = {}
    for point in points:
        for warning in point.judgement.warnings:
            by_rule.setdefault(warning.rule, []).append((point, warning))
    groups = [_group(warnings, len(points)) for warnings in by_rule.values()]
    return sorted(groups, key=lambda group: group.tone is not Verdict.INVALID)


def _group(warnings: Sequence[tuple[PointJudgement, ValidityWarning]], points: int) -> Callout:
    at_worst, worst = next(
        (warning for warning in warnings if warning[1].severity == "invalid"), warnings[0]
    )
    lines = list(dict.fromkeys(as_called(each.what) for _, each in warnings))
    if points > 1:
        lines = [*_places(warnings, points), f"for example: {as_called(worst.what)}"]
    return Callout(
        tone=Verdict.INVALID if worst.severity == "invalid" else Verdict.INCONCLUSIVE,
        name=worst.rule,
        means=_meaning(worst, at_worst.judgement),
        lines=lines,
        fix=as_called(worst.fix),
    )


def _places(
    warnings: Sequence[tuple[PointJudgement, ValidityWarning]], points: int
) -> Iterator[str]:
    by_variant: dict[str | None, dict[str, None]] = {}
    for point, each in warnings:
        by_variant.setdefault(each.variant, {})[text.levels_text(point.point.levels)] = None
    for variant, labels in by_variant.items():
        who, named = variant or "all variants", len(labels) <= NAMED_POINTS
        if len(labels) == points:
            yield f"{who} at {'both' if points == 2 else f'all {points}'} points"
        else:
            names = f" ({'; '.join(labels)})" if named else ""
            yield f"{who} at {len(labels)} of {points} points{names}"


def _meaning(warning: ValidityWarning, judgement: Judgement) -> str:
    if warning.severity == "note":
        return "note"
    if not warning.metrics:
        return "no verdict"
    labels = [metric.label for metric in judgement.metrics if metric.name in warning.metrics]
    return f"no verdict on {'; '.join(labels)}"
