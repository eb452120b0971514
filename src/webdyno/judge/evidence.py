"""What of a run's records counts: the finished blocks, their measured slots, what happened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from webdyno.model.records import (
    BlockRecord,
    CertificateRecord,
    IncidentRecord,
    Record,
    SlotRecord,
)


@dataclass(frozen=True)
class Block:
    """A finished block: how it went, and its measured slots (warm-ups are left out)."""

    record: BlockRecord
    slots: tuple[SlotRecord, ...]

    def of(self, arm: str) -> list[SlotRecord]:
        """Give the arm's slots in their order."""
        return [slot for slot in self.slots if slot.arm == arm]


@dataclass(frozen=True)
class Evidence:
    """A run's records, grouped as the judge needs them."""

    blocks: tuple[Block, ...]
    certificates: tuple[CertificateRecord, ...]
    incidents: tuple[IncidentRecord, ...]

    @property
    def slots(self) -> list[SlotRecord]:
        """All measured slots of finished blocks."""
        return [slot for block in self.blocks for slot in block.slots]

    @property
    def block_s(self) -> float:
        """How long a block takes: on average those with as many slots as the last one."""
        if not self.blocks:
            return 0.0
        records = [block.record for block in self.blocks]
        return fmean(it.took_s for it in records if len(it.order) == len(records[-1].order))

    def first(self, blocks: int) -> "Evidence":
        """Keep the first blocks only."""
        return replace(self, blocks=self.blocks[:blocks])

    def without(self, left_out: Iterable[tuple[int, int]]) -> "Evidence":
        """Leave out slots, each named by block and slot number."""
        gone = set(left_out)
        blocks = (
            replace(block, slots=tuple(s for s in block.slots if (s.block, s.slot) not in gone))
            for block in self.blocks
        )
        return replace(self, blocks=tuple(blocks))


def gather(records: Sequence[Record]) -> Evidence:
    """Group records by block.

    A block that was cut off and begun again in a resumed run starts over at a lower slot number:
    what came before that is left out.
    """
    slots: dict[int, list[SlotRecord]] = {}
    blocks: dict[int, Block] = {}
    certificates: dict[int, CertificateRecord] = {}
    incidents: list[IncidentRecord] = []
    for record in records:
        match record:
            case SlotRecord():
                earlier = slots.setdefault(record.block, [])
                if earlier and record.slot <= earlier[-1].slot:
                    earlier.clear()
                earlier.append(record)
            case BlockRecord():
                measured = [s for s in slots.get(record.block, []) if s.phase == "measure"]
                blocks[record.block] = Block(record, tuple(measured))
            case CertificateRecord():
                certificates[record.block] = record
            case IncidentRecord():
                incidents.append(record)
    return Evidence(
        blocks=tuple(blocks[number] for number in sorted(blocks)),
        certificates=tuple(certificates[number] for number in sorted(certificates)),
        incidents=tuple(incidents),
    )
