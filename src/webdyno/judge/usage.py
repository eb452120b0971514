"""What a run's time went into."""

from collections.abc import Iterable

from webdyno.judge.point_data import PointData, RunData
from webdyno.judge.validity import left_out_slots
from webdyno.model.records import BlockRecord, PilotRecord


def counting_share(
    points: Iterable[PointData],
) -> float | None:
    """Give the share of the time of pilots and blocks that was spent in windows that count.

    Slots that are left out of every metric don't count. Blocks that don't count, for a remedy's
    sake, took time all the same. None before the first block has ended.
    """
    counted_s = took_s = 0.0
    for data in points:
        broken = {(it.block, it.slot) for it in left_out_slots(data) if not it.metrics}
        counted_s += sum(
            it.load.measured_s for it in data.slots if (it.block, it.slot) not in broken
        )
        took_s += used_s(data)
    return counted_s / took_s if took_s else None


def used_s(found: PointData | RunData) -> float:
    """Give how much of its time is used up: what pilots and finished blocks took."""
    return sum(it.took_s for it in found.records if isinstance(it, BlockRecord | PilotRecord))
