"""`report.html` of an experiment with factors."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from webdyno.judge.sweep import runs_by_point
from webdyno.model.point import PointJudgement, SweepJudgement
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.facts import how_measured
from webdyno.report.page import page
from webdyno.report.sweep.charts import metric_figure, ratio_figure
from webdyno.report.sweep.evidence import (
    factor_facts,
    grouped_findings,
    sweep_evidence,
    verdict_counts,
)
from webdyno.report.view import PointView, point_view


@dataclass(frozen=True)
class FoldedPoint:
    """A point with all its evidence, folded away until somebody asks for it."""

    label: str
    view: PointView


def sweep_report(folder: Path, head: RunHead, records: list[Record], sweep: SweepJudgement) -> str:
    """Give the page as text."""
    decide_on = head.experiment.measure.decide_on
    metrics = sorted(sweep.points[0].judgement.metrics, key=lambda it: it.name != decide_on)
    drawn = [ratio_figure(head, sweep, metrics[0])]
    drawn += [metric_figure(head, sweep, metric) for metric in metrics]
    figures = [figure for figure in drawn if figure]
    points = [
        _folded(at, run.head, run.records)
        for at, run in zip(sweep.points, runs_by_point(head, records), strict=True)
    ]
    blocks = sum(at.judgement.blocks for at in sweep.points)
    return page(
        "sweep.html",
        folder,
        head,
        chain(figures, *(point.view.figures.values() for point in points)),
        sweep=sweep,
        counts=verdict_counts(head, sweep),
        findings=grouped_findings(sweep),
        found=sweep_evidence(head, sweep),
        figures=figures,
        points=points,
        how=factor_facts(head) + how_measured(head, records, blocks),
    )


def _folded(at: PointJudgement, head: RunHead, records: list[Record]) -> FoldedPoint:
    prefix = f"point-{at.point.number}-"
    return FoldedPoint(
        text.levels(at.point.levels), point_view(head, records, at.judgement, prefix)
    )
