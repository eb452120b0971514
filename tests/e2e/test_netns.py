"""`webdyno compare … --testbed netns`: two stacks over a link of our own."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from e2e.commands import (
    QUICK,
    left_behind,
    run_rounds,
    started_webdyno,
    wait_for,
    webdyno,
    webdyno_here,
)
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-Urn", "true"], check=False).returncode != 0,
    reason="no network namespaces here",
)
OVER_A_LINK = ("nginx", "apache-event", "--testbed=netns", "--link=10mbit")
LARGE = ("--path=/100KB.txt", "--set=load.connections=2")
"""Two answers of 100 KB take 10 Mbit/s 0.16 s, and so does the drain after each slot."""
SMALL = ("--path=/100.txt", "--set=load.connections=2")
SOON = "--set=load.timeout_s=1"
"""So long the engine waits for responses of servers that are gone with their end of the link."""


@pytest.mark.measures
def test_a_link_that_is_too_small_is_named(tmp_path: Path) -> None:
    run_rounds(1, "compare", *OVER_A_LINK, *LARGE, *QUICK, folder=tmp_path)
    done = webdyno("report", "run", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    assert "the link carried" in done.stdout
    folder = RunFolder.open(tmp_path / "run")
    assert "10 Mbit/s" in (folder.head.machine.network or "")
    slots = [record for record in folder.records() if isinstance(record, SlotRecord)]
    assert {slot.load.failures.total for slot in slots} == {0}
    assert all(slot.readings and slot.readings.network.link_bytes_per_s == 1.25e6 for slot in slots)
    preflights = [r for r in folder.records() if isinstance(r, PreflightRecord)]
    assert {a.status for c in preflights for own in c.responses.values() for a in own} == {200}


@pytest.mark.long
def test_a_killed_run_leaves_nothing_and_goes_on(tmp_path: Path) -> None:
    with started_webdyno(
        "compare",
        *OVER_A_LINK,
        *SMALL,
        SOON,
        "--delay=5ms",
        *QUICK,
        "--output=run",
        folder=tmp_path,
    ) as process:
        wait_for(tmp_path / "run/slots.jsonl", lines=3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left_behind(tmp_path) == []
    done = webdyno("resume", "run", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    assert left_behind(tmp_path) == []


def test_what_needs_namespaces_is_reported(tmp_path: Path) -> None:
    done = webdyno_here("compare", "nginx", "apache-event", "--link=100mbit", folder=tmp_path)
    assert done.returncode == 2
    assert "--testbed netns" in done.stderr
    done = webdyno_here("run", "--testbed=netns", "--delay=soon", folder=tmp_path)
    assert done.returncode == 2
    assert "--delay soon" in done.stderr
    assert "500ms" in done.stderr
