"""Noisy neighbours: they do what they are for, and leave nothing behind."""

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from rig.neighbour import CPU_GROUPS, WORK, bursts, following, throttled, working
from rig.process import BenchError
from waiting import wait_until

GROUPS = CPU_GROUPS.is_dir() and os.geteuid() == 0


def test_bursts_work_and_end() -> None:
    before = set(psutil.Process().children())
    with bursts([min(os.sched_getaffinity(0))]):
        (neighbour,) = set(psutil.Process().children()) - before
        wait_until(lambda: sum(neighbour.cpu_times()[:2]) > 0.1)
    assert set(psutil.Process().children()) == before


@pytest.mark.parametrize("work", WORK)
def test_each_kind_of_work_works_and_ends(work: str) -> None:
    before = set(psutil.Process().children())
    with working(work, [sorted(os.sched_getaffinity(0))]) as pids:
        neighbour = psutil.Process(pids[0])
        wait_until(lambda: sum(neighbour.cpu_times()) > 0.05)
        known = neighbour.children(recursive=True)
    assert set(psutil.Process().children()) == before
    wait_until(lambda: not any(map(is_alive, known)))


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def followers() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "steady" in each.cmdline()]


def test_a_follower_works_only_while_the_other_does(tmp_path: Path) -> None:
    program = Path(shutil.copy(shutil.which("sh") or "", tmp_path / "shell"))
    cpus = sorted(os.sched_getaffinity(0))
    with following(program, "mark", cpus[:1]):
        wait_until(followers)
        (follower,) = followers()
        wait_until(lambda: follower.status() == psutil.STATUS_STOPPED)
        with subprocess.Popen([str(program), "-c", "while :; do :; done", "mark"]) as busy:
            try:
                wait_until(lambda: follower.status() != psutil.STATUS_STOPPED)
            finally:
                busy.kill()
        wait_until(lambda: follower.status() == psutil.STATUS_STOPPED)


@pytest.mark.skipif(not GROUPS, reason="needs root and version 1 of the cpu control groups")
def test_a_throttled_program_is_slowed_and_let_go(tmp_path: Path) -> None:
    program = Path(shutil.copy(shutil.which("sleep") or "", tmp_path / "sleeper"))
    group = CPU_GROUPS / f"bench-throttled-{os.getpid()}"
    with subprocess.Popen([str(program), "60"]) as sleeper:
        try:
            with throttled(program, cpus=1):
                wait_until(lambda: str(sleeper.pid) in (group / "cgroup.procs").read_text())
                wait_until(lambda: int((group / "cpu.cfs_quota_us").read_text()) > 0)
            assert not group.exists()
            assert sleeper.poll() is None
        finally:
            sleeper.kill()


def test_where_no_group_can_be_made_the_message_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rig.neighbour.CPU_GROUPS", tmp_path / "nothing")
    with (
        pytest.raises(BenchError, match="leave it out with --neighbours"),
        throttled(tmp_path, cpus=1),
    ):
        pass
