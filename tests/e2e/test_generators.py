"""`--generator`: instruments of older studies make the load of a run."""

import os
import signal
from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, started_webdyno, wait_for, webdyno, webdyno_here
from webdyno.core.records import SlotRecord
from webdyno.measure.folder import RunFolder

OPEN = (
    "--set=load.loop=open",
    "--set=load.arrival_unit=connection",
    "--set=load.rate_per_s=50",
    "--set=load.keepalive=10",
)


@pytest.mark.measures
@pytest.mark.parametrize(("name", "load"), [("ab", ()), ("wrk", ()), ("httperf", OPEN)])
def test_an_instruments_run_is_kept_judged_and_leaves_nothing(
    name: str, load: tuple[str, ...], tmp_path: Path
) -> None:
    arguments = ["run", *QUICK, *load, f"--generator={name}", "--output=run"]
    with started_webdyno(*arguments, folder=tmp_path) as process:
        wait_for(
            tmp_path / "run/slots.jsonl", lines=3
        )  # the pre-flight check, and a slot of each variant
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert left_behind(tmp_path) == []
    folder = RunFolder.open(tmp_path / "run")
    assert folder.head.load_generator.startswith(f"{name} ")
    slots = [record for record in folder.records() if isinstance(record, SlotRecord)]
    assert all(slot.load.requests.completed > 0 for slot in slots)
    assert all(slot.load.printed for slot in slots)
    done = webdyno("report", "run", folder=tmp_path)
    assert "Traceback" not in done.stderr
    assert "Latency" not in done.stdout
    assert name in webdyno("report", "run", "--verbose", folder=tmp_path).stdout


def test_a_load_that_the_instrument_cannot_make_is_a_mistake(tmp_path: Path) -> None:
    done = webdyno_here("run", "--generator=httperf", folder=tmp_path)
    assert done.returncode == 2
    assert "opens connections at a rate" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
