"""Noisy neighbours, started on purpose: what else a shared machine does to a server.

Run as a program, this is the one that works in bursts.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from rig.process import BenchError, pinned

BURST_S, PAUSE_S = (0.01, 0.05), (0.03, 0.15)
"""Shortest and longest: some 25 % of a CPU's time is requested."""
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
QUOTA_PERIOD_US = 20_000
LEFT_SHARE = (0.3, 0.8)
"""What is left of the CPU time while it is throttled: least and most."""
THROTTLED_S, FREE_S = (0.1, 0.5), (0.3, 2.0)
LOOK_S = 0.1
REMOVE_WITHIN_S = 5.0


@contextmanager
def bursts(cpus: Sequence[int]) -> Iterator[None]:
    """Work in bursts on each of these CPUs."""
    command = [sys.executable, str(Path(__file__).resolve())]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with ExitStack() as running:
        for cpu in cpus:
            process = subprocess.Popen(pinned(command, [cpu]), env=environment)
            running.callback(process.wait)
            running.callback(process.kill)
        yield


@contextmanager
def throttled(program: Path, cpus: int) -> Iterator[None]:
    """Take CPU time from all processes of a program now and then, as a hypervisor does.

    They go into a control group whose quota changes at random. Raises BenchError where no such
    group can be made.
    """
    group = CPU_GROUPS / f"bench-throttled-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_US))
    except OSError as error:
        raise BenchError(
            f"{group}: can't be made: {error.strerror}; throttling needs root and version 1 of the "
            "cpu control groups: leave it out with --neighbours"
        ) from None
    ended = Event()
    thread = Thread(target=_throttle, args=(group, program, cpus, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _remove(group)


def _throttle(group: Path, program: Path, cpus: int, ended: Event) -> None:
    rng, held, change_s = random.Random(), False, 0.0
    while not ended.wait(LOOK_S):
        for pid in _pids(program):
            with suppress(OSError):  # it may have ended meanwhile
                (group / "cgroup.procs").write_text(pid)
        if time.monotonic() < change_s:
            continue
        held = not held
        change_s = time.monotonic() + rng.uniform(*(THROTTLED_S if held else FREE_S))
        quota_us = int(rng.uniform(*LEFT_SHARE) * cpus * QUOTA_PERIOD_US) if held else -1
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))


def _pids(program: Path) -> Iterator[str]:
    for link in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            if link.readlink() == program:
                yield link.parent.name


def _remove(group: Path) -> None:
    """Let go of what may still run in the group, then remove it."""
    end_s = time.monotonic() + REMOVE_WITHIN_S
    while group.exists() and time.monotonic() < end_s:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (CPU_GROUPS / "cgroup.procs").write_text(pid)
        try:
            group.rmdir()
        except OSError:
            time.sleep(LOOK_S)


def _work_in_bursts() -> None:
    rng = random.Random()
    while True:
        end_s = time.monotonic() + rng.uniform(*BURST_S)
        while time.monotonic() < end_s:
            pass
        time.sleep(rng.uniform(*PAUSE_S))


if __name__ == "__main__":
    _work_in_bursts()
