"""The run: blocks until the stop rule holds."""

import time

from webdyno.judge import decide
from webdyno.model.records import BlockRecord
from webdyno.run.block import run_block
from webdyno.run.lab import Lab


def run_blocks(lab: Lab) -> None:
    """Run block after block, beginning after the last finished one, until the stop rule holds.

    The time budget counts from the first block of this call.
    """
    began = time.monotonic()
    number = sum(isinstance(record, BlockRecord) for record in lab.records)
    while decide(lab.records, lab.experiment, time.monotonic() - began) is None:
        number += 1
        if not run_block(lab, number):
            return
