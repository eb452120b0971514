"""Who watches a run while it goes on, to show its progress."""

from typing import Protocol

from webdyno.model.experiment import Experiment
from webdyno.model.point import Point
from webdyno.model.records import BlockRecord, Record, SlotRecord


class Watcher(Protocol):
    """Told of each step of a run as it happens."""

    def block_begins(self, point: Point, block: int, slots: int) -> None:
        """A block with that many slots, warm-ups included, starts its servers."""

    def slot_begins(self, arm: str, phase: str) -> None:
        """An arm comes under load."""

    def slot_ends(self, record: SlotRecord) -> None:
        """A slot was measured and is on disk."""

    def block_ends(self, block: BlockRecord, experiment: Experiment, records: list[Record]) -> None:
        """A block is complete; experiment and records are those of its point."""
