"""Histories that were never measured."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from builders import machine
from webdyno.core.base import Interval
from webdyno.history import PastGate, PastRatio

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
REFERENCE = "v1.2 (1a2b3c4d5e)"


def history_of(curves: Mapping[tuple[str, str], Sequence[float]]) -> list[PastGate]:
    """Make the gates of a day each, by the ratios of each endpoint and metric."""
    days = len(next(iter(curves.values())))
    return [
        PastGate(
            measured_at=BEGAN + timedelta(days=day),
            reference=REFERENCE,
            head=f"HEAD ({day:010x})",
            machine=machine(),
            ratios=[
                PastRatio(endpoint=endpoint, metric=metric, ratio=_around(ratios[day]))
                for (endpoint, metric), ratios in curves.items()
            ],
        )
        for day in range(days)
    ]


def _around(ratio: float) -> Interval:
    return Interval(low=ratio * 0.98, estimate=ratio, high=ratio * 1.02)
