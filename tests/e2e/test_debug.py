"""`--debug FILE`: what webdyno did can be read afterwards, however it ended."""

import re
import signal
from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, started_webdyno, webdyno, webdyno_here
from waiting import wait_until
from webdyno.core.registry import commands

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (?P<pid>\d+) webdyno\.(?P<module>[\w.]+): .*"
)


def test_a_hang_before_there_is_a_folder_can_be_understood(tmp_path: Path) -> None:
    file = tmp_path / "debug.log"
    waiting = "waits until"
    words = ("compare", "cmd:sleep 600", "cmd:sleep 601", "--debug", "debug.log")
    with started_webdyno(*words, folder=tmp_path) as running:
        wait_until(lambda: file.exists() and waiting in file.read_text())
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert not (tmp_path / "runs").exists()
    lines = file.read_text().splitlines()
    assert "arguments: compare 'cmd:sleep 600'" in lines[1]
    last = next(line for line in reversed(lines) if waiting in line)
    assert re.search(r"waits until \S.* answers http://127\.0\.0\.1:\d+/", last)
    assert any("a warden, starts" in line and "sleep 60" in line for line in lines)
    assert left_behind(tmp_path) == []


def test_a_run_says_what_it_does_and_prints_the_same(tmp_path: Path) -> None:
    done = webdyno(
        *("compare", "nginx", "apache-event", "--path", "/hello.txt", *QUICK),
        *("--debug=debug.log", "-o", "run"),
        folder=tmp_path,
    )
    assert done.returncode in {0, 1, 5}, done.stderr
    said = (tmp_path / "debug.log").read_text()
    assert all(LINE.match(line) for line in said.splitlines() if not line.startswith("    "))
    for step in (
        "the catalog has",
        "made the run's folder run",
        "waits until nginx",
        "is the load engine",
        "round 1 at point 0, with",
        "slot 0 of round 1",
        "kept a SlotRecord",
        "point 0 stops",
        "removes /",
        "exit code",
    ):
        assert step in said, step
    assert "debug" not in done.stderr


@pytest.mark.parametrize("name", commands())
def test_each_command_takes_it(name: str, tmp_path: Path) -> None:
    done = webdyno_here(name, "--no-such-flag", "--debug", "debug.log", folder=tmp_path)
    assert done.returncode == 2
    assert f"arguments: {name} --no-such-flag" in (tmp_path / "debug.log").read_text()


def test_a_file_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    done = webdyno_here("list", "stacks", "--debug", "missing/debug.log", folder=tmp_path)
    assert done.returncode == 3
    assert "missing/debug.log: can't be written" in done.stderr
    done = webdyno_here("list", "stacks", "--debug", folder=tmp_path)
    assert done.returncode == 2
    assert "--debug lacks its file" in done.stderr
