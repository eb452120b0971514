"""Everything that the page shows of one point: an experiment without factors, or a part of one."""

from dataclasses import dataclass

from webdyno.model.judgement import Judgement
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report.certificate import Certificate, certificate
from webdyno.report.charts import cpu_figure, latency_figure, ratio_figure, slots_figure
from webdyno.report.costs import Cost, costs
from webdyno.report.evidence import MetricEvidence, evidence
from webdyno.report.figure import Figure
from webdyno.report.host_chart import host_figure


@dataclass(frozen=True)
class PointView:
    """What templates need of a point."""

    judgement: Judgement
    metrics: list[MetricEvidence]
    figures: dict[str, Figure]
    """By kind, in the order of reading; what can't be drawn isn't there."""
    certificate: Certificate | None
    costs: dict[str, list[Cost]]
    """By group."""
    arms: list[str]


def point_view(
    head: RunHead, records: list[Record], judgement: Judgement, prefix: str = ""
) -> PointView:
    """Make the view; `prefix` sets its charts apart from those of other points in the page."""
    metrics = evidence(head, judgement)
    found = (
        ratio_figure(metrics),
        latency_figure(head, records),
        slots_figure(head, records, judgement),
        cpu_figure(head, judgement),
        host_figure(head, records),
    )
    return PointView(
        judgement=judgement,
        metrics=metrics,
        figures={figure.name: figure.prefixed(prefix) for figure in found if figure},
        certificate=certificate(records),
        costs=costs(head, records),
        arms=list(head.experiment.arms),
    )
