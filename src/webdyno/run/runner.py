"""The run: blocks at every point until the stop rule holds there."""

import time
from collections.abc import Sequence

from webdyno.judge import decide
from webdyno.model.records import BlockRecord
from webdyno.run.block import run_block
from webdyno.run.lab import Lab
from webdyno.run.order import round_rng


def run_blocks(labs: Sequence[Lab]) -> None:
    """Run blocks until the stop rule holds at every point.

    The points take turns, a block each, in random order, so that a drift of the machine weighs on
    all alike. Each begins after its last finished block on record; its share of the time budget
    counts from this call.
    """
    going = [_Going(lab) for lab in labs]
    turn = 0
    while going := [point for point in going if not point.is_done()]:
        turn += 1
        for point in round_rng(labs[0].seed, turn).sample(going, len(going)):
            point.run_block()


class _Going:
    """A point that is being measured."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._used_s = 0.0
        self._in_vain = False

    def is_done(self) -> bool:
        """Whether another block would be in vain, or is not needed any more."""
        return self._in_vain or bool(decide(self._lab.records, self._lab.experiment, self._used_s))

    def run_block(self) -> None:
        """Run the next block."""
        began = time.monotonic()
        finished = sum(isinstance(record, BlockRecord) for record in self._lab.records)
        self._in_vain = not run_block(self._lab, finished + 1)
        self._used_s += time.monotonic() - began
