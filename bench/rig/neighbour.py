"""Noisy neighbours, started on purpose: what else a shared machine does to a server.

Run as a program with a name of `WORK`, this does that work.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from rig.process import BenchError, pinned

BURST_S, PAUSE_S = (0.01, 0.05), (0.03, 0.15)
"""Shortest and longest: some 25 % of a CPU's time is requested."""
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
STEADY_S, STEADY_SHARE = 0.01, 0.3
FOLLOW_S = 0.02
COPIED_BYTES = 64 * 2**20
QUOTA_PERIOD_US = 20_000
LEFT_SHARE = (0.3, 0.8)
"""What is left of the CPU time while it is throttled: least and most."""
THROTTLED_S, FREE_S = (0.1, 0.5), (0.3, 2.0)
LOOK_S = 0.1
REMOVE_WITHIN_S = 5.0


@contextmanager
def bursts(cpus: Sequence[int]) -> Iterator[None]:
    """Work in bursts on each of these CPUs."""
    with working("bursts", [[cpu] for cpu in cpus]):
        yield


@contextmanager
def working(work: str, places: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """Do a work of `WORK` in a process for each of the places: the CPUs that it may use.

    Give the processes' numbers.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with ExitStack() as running:
        pids = []
        for cpus in places:
            command = pinned([sys.executable, str(Path(__file__).resolve()), work], cpus)
            process = subprocess.Popen(command, env=environment, start_new_session=True)
            running.callback(process.wait)
            running.callback(_kill_group, process.pid)
            pids.append(process.pid)
        yield pids


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


@contextmanager
def following(program: Path, argument: str, cpus: Sequence[int]) -> Iterator[None]:
    """Work steadily while a program that was started with some argument works, and only then."""
    ended = Event()
    with working("steady", [[cpu] for cpu in cpus]) as pids:
        thread = Thread(target=_follow, args=(program, argument, pids, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _follow(program: Path, argument: str, pids: Sequence[int], ended: Event) -> None:
    before_ticks = 0
    while not ended.wait(FOLLOW_S):
        ticks = sum(map(_used_ticks, _followed(program, argument)))
        moved = ticks > before_ticks
        before_ticks = ticks
        for pid in pids:
            os.kill(pid, signal.SIGCONT if moved else signal.SIGSTOP)


def _followed(program: Path, argument: str) -> Iterator[str]:
    for pid in _pids(program):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
            if argument in " ".join(words):
                yield pid


def _used_ticks(pid: str) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


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


def _bursts() -> None:
    rng = random.Random()
    while True:
        _spin(rng.uniform(*BURST_S))
        time.sleep(rng.uniform(*PAUSE_S))


def _steady() -> None:
    while True:
        _spin(STEADY_S * STEADY_SHARE)
        time.sleep(STEADY_S * (1 - STEADY_SHARE))


def _busy() -> None:
    while True:
        pass


def _processes() -> None:
    """Start short processes one after the other, as a build does."""
    while True:
        subprocess.run(
            ["sh", "-c", "for i in 1 2 3 4 5; do cat /proc/self/maps; done"],
            stdout=subprocess.DEVNULL,
        )
        subprocess.run([sys.executable, "-S", "-c", "sum(range(300000))"])
        time.sleep(0.02)


def _memory() -> None:
    """Copy more than caches hold, for a share of the time."""
    source = bytearray(COPIED_BYTES)
    while True:
        began_s = time.perf_counter()
        bytes(source)
        time.sleep((time.perf_counter() - began_s) * (1 - STEADY_SHARE) / STEADY_SHARE)


def _disk_and_network() -> None:
    """Write to a disk and send over loopback."""
    block = os.urandom(2**20)
    mine, theirs = socket.socketpair()
    Thread(target=_swallow, args=(theirs,), daemon=True).start()
    with tempfile.TemporaryFile() as file:
        while True:
            file.seek(0)
            for _ in range(4):
                file.write(block)
                mine.sendall(block)
            file.flush()
            os.fsync(file.fileno())
            time.sleep(0.02)


def _swallow(peer: socket.socket) -> None:
    while peer.recv(2**20):
        pass


def _spin(for_s: float) -> None:
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        pass


WORK: dict[str, Callable[[], None]] = {
    "bursts": _bursts,
    "steady": _steady,
    "busy": _busy,
    "processes": _processes,
    "memory": _memory,
    "disk": _disk_and_network,
}
"""By name: what a process of a neighbour does until it is killed."""

if __name__ == "__main__":
    WORK[sys.argv[1]]()
