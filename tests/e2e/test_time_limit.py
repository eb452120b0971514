"""Commands end within the time that they are given, with what is known by then."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from e2e.commands import left_behind, webdyno, webdyno_here
from webdyno.core.errors import Exit
from webdyno.core.records import PilotRecord, RoundRecord, SlotRecord, StopRecord
from webdyno.measure.folder import RunFolder

SPARE = 1.15
"""Times the limit: the answer has to be there."""
COMPARED = ("compare", "nginx", "apache-event")
GATED = ("gate", "--base=nginx", "--head=nginx", "--site=static")


@pytest.mark.measures
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("seconds", "asked"),
    [(20, COMPARED), (60, GATED), (60, ("capacity", "nginx", "--no-report"))],
    ids=["compare", "gate", "capacity"],
)
def test_the_answer_is_there_within_the_time_that_is_given(
    seconds: int, asked: tuple[str, ...], tmp_path: Path
) -> None:
    done = webdyno(*asked, f"--time={seconds}s", "--output=run", folder=tmp_path)
    ended = datetime.now(UTC)
    assert done.returncode in {Exit.OK, Exit.INVALID, Exit.WORSE, Exit.INCONCLUSIVE}, done.stderr
    records = RunFolder.open(tmp_path / "run").records()
    began = min(it.started_at for it in records if isinstance(it, PilotRecord | SlotRecord))
    assert (ended - began).total_seconds() <= SPARE * seconds, done.stderr
    assert any(isinstance(it, RoundRecord) for it in records)
    assert left_behind(tmp_path) == []


def test_a_limit_cuts_what_goes_beyond_and_says_what_would_do(tmp_path: Path) -> None:
    """Slots of a length that the user gives aren't shortened: one of six rounds fits at most."""
    slots = (
        "--set=measure.slot_s=1",
        "--set=measure.warmup_s=0",
        "--set=measure.slots_per_variant=2",
    )
    done = webdyno(*COMPARED, *slots, "--time=6s", "--output=run", folder=tmp_path)
    assert "takes 6 s, too short for a verdict, which needs 6 rounds or more: " in done.stderr
    assert "(--time " in done.stderr
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    assert "INCOMPLETE" in done.stdout or "INCONCLUSIVE" in done.stdout
    records = RunFolder.open(tmp_path / "run").records()
    assert sum(isinstance(it, RoundRecord) for it in records) < 6
    (stop,) = (it for it in records if isinstance(it, StopRecord))
    assert stop.reason == "time"
    assert "resume run --time 6s" in done.stdout
    assert left_behind(tmp_path) == []


def test_a_time_in_which_nothing_can_be_measured_is_refused_at_once(tmp_path: Path) -> None:
    done = webdyno_here(*COMPARED, "--time=1s", "--output=run", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert "--time 1s is too short to measure anything: one round takes" in done.stderr
    assert not (tmp_path / "run").exists()
