"""What a run's time went into."""

from collections.abc import Sequence

from webdyno.judge.measured import Measured
from webdyno.model.records import BlockRecord, PilotRecord, Record


def counting_share(records: Sequence[Record]) -> float | None:
    """Give the share of the time of pilots and blocks that was spent in windows that count.

    All points together. Blocks that don't count, for a remedy's sake, took time all the same. None
    before the first block has ended.
    """
    points = {record.point for record in records if isinstance(record, BlockRecord)}
    measured = [Measured.of(it for it in records if it.point == point) for point in points]
    counted_s = sum(slot.load.measured_s for point in measured for slot in point.slots)
    took_s = sum(it.took_s for it in records if isinstance(it, BlockRecord | PilotRecord))
    return counted_s / took_s if took_s > 0 else None
