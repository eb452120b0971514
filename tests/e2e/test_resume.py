"""Runs that are killed and resumed end like runs that nobody disturbed."""

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.commands import left_behind, started_webdyno, wait_for, webdyno
from webdyno.judge.measured import Measured
from webdyno.model.records import BlockRecord, Record, SlotRecord
from webdyno.run.folder import RunFolder

KILLS = 10
BLOCKS = 8
SHORT = (
    "--set=measure.slot_s=0.05",
    "--set=measure.warmup_s=0.05",
    "--set=measure.slots_per_arm=2",
    f"--set=measure.min_blocks={BLOCKS}",
    f"--set=measure.max_blocks={BLOCKS}",
    "--set=measure.seed=7",
    # A client that is short of CPU, as beside other tests, says nothing about server CPU time.
    "--set=measure.decide_on=server_cpu_us",
)


def structure(records: Sequence[Record]) -> list[tuple[int, list[str], list[tuple[int, str]]]]:
    """What doesn't depend on the machine's mood: blocks with their orders and slots."""
    return [
        (block.record.block, block.record.order, [(slot.slot, slot.arm) for slot in block.slots])
        for block in Measured.of(records).blocks
    ]


def test_a_run_killed_ten_times_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    (calm := tmp_path / "calm").mkdir()
    (rough := tmp_path / "rough").mkdir()
    with started_webdyno("run", *SHORT, "--out=run", folder=calm) as undisturbed:
        arguments = ["run", *SHORT, "--out=run"]
        for _ in range(KILLS):
            with started_webdyno(*arguments, folder=rough) as process:
                wait_for(rough / "run/slots.jsonl", lines=1)
                time.sleep(random.uniform(0, 2.0))
                os.kill(process.pid, signal.SIGKILL)
            assert left_behind(rough) == []
            arguments = ["resume", "run"]
        finished = webdyno("resume", "run", folder=rough)
        undisturbed.communicate(timeout=60)
    # 1: other tests on this machine can make a verdict invalid; that is not asked here.
    assert {finished.returncode, undisturbed.returncode} <= {0, 1}, finished.stderr
    there, here = (RunFolder.open(folder / "run").records() for folder in (calm, rough))
    assert len(structure(there)) == BLOCKS
    assert structure(here) == structure(there)
    assert [it.block for it in here if isinstance(it, BlockRecord)] == list(range(1, BLOCKS + 1))
    assert any(isinstance(it, SlotRecord) and it.phase == "warmup" for it in here)
    assert (rough / "run/report.html").exists()
    assert left_behind(tmp_path) == []
