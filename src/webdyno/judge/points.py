"""A run taken apart by its points: each is a run of its own, with its own settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from webdyno.model.point import Point, plan_points
from webdyno.model.records import Record
from webdyno.model.run import RunHead


@dataclass(frozen=True)
class PointRun:
    """What a run's folder would hold if only this point had been measured."""

    point: Point
    head: RunHead
    records: list[Record]


def runs_by_point(head: RunHead, records: Sequence[Record]) -> list[PointRun]:
    """Give each point's part of a run; an experiment without factors is a single point."""
    return [
        PointRun(
            point=plan.point,
            head=head.model_copy(update={"experiment": plan.experiment}),
            records=[record for record in records if record.point == plan.point.number],
        )
        for plan in plan_points(head.experiment)
    ]
