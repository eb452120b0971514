"""What closes what is idle has opened it again before its slots count."""

import sys
from pathlib import Path

import pytest

from e2e.commands import run_rounds, slots
from webdyno.core.looks import WAKE_AFTER_S
from webdyno.measure.folder import RunFolder

pytestmark = pytest.mark.long

SERVER = Path(__file__).parent / "sleepy/server.py"


def test_no_slot_that_counts_is_the_first_load_after_a_long_wait(tmp_path: Path) -> None:
    """Node's pools had closed their connections while other variants warmed up for 10 s."""
    one, other = (
        f"cmd:{sys.executable} {SERVER} $PORT {WAKE_AFTER_S + more_s}" for more_s in (0.5, 0.6)
    )
    settings = {"measure.warmup_s": WAKE_AFTER_S + 1, "measure.slot_s": 0.3, "load.connections": 4}
    chosen = [f"--set={key}={value}" for key, value in settings.items()]
    run_rounds(1, "compare", one, other, *chosen, "--time=3min", folder=tmp_path)
    seen = [slot for slot in slots(RunFolder.open(tmp_path / "run")) if slot.round == 1]
    logs = [path.read_text() for path in (tmp_path / "run/rounds").rglob("*.log")]
    asked_again_at = [float(line) for log in logs for line in log.splitlines()]
    assert asked_again_at
    assert "wake-up" in {slot.phase for slot in seen}
    for slot in seen:
        began = slot.started_at.timestamp()
        inside = [at for at in asked_again_at if 0 <= at - began <= slot.load.measured_s]
        assert slot.phase != "measure" or not inside
