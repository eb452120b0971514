"""What a run's time went into."""

from collections.abc import Iterable, Sequence

from webdyno.judge.measured import Measured
from webdyno.model.judgement import LeftOutSlot
from webdyno.model.records import BlockRecord, PilotRecord, Record


def counting_share(
    points: Iterable[tuple[Sequence[Record], Sequence[LeftOutSlot]]],
) -> float | None:
    """Give the share of the time of pilots and blocks that was spent in windows that count.

    Takes each point's records with the slots left out there; those that are left out of every
    metric don't count. Blocks that don't count, for a remedy's sake, took time all the same. None
    before the first block has ended.
    """
    counted_s = took_s = 0.0
    for records, left_out in points:
        broken = {(it.block, it.slot) for it in left_out if not it.metrics}
        slots = Measured.of(records).slots
        counted_s += sum(it.load.measured_s for it in slots if (it.block, it.slot) not in broken)
        took_s += sum(it.took_s for it in records if isinstance(it, BlockRecord | PilotRecord))
    return counted_s / took_s if took_s else None
