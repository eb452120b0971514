"""CPU time of a stack's whole process tree, children included that have ended since.

The best means comes first: a control group counts whatever ran in it, to the microsecond. Without
one the tree in /proc is added up: live processes to the nanosecond (by their CPU clocks, threads
that ended included), ended children in clock ticks of usually 10 ms, and as far as their parents
waited for them.
"""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from webdyno.core.records import ServerUse
from webdyno.probes.scene import Scene
from webdyno.servers.running import RunningStack

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuReading:
    """CPU time used up to a moment, in seconds."""

    user_s: float
    sys_s: float
    means: Literal["cgroup-v2", "cgroup-v1", "procfs"]

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.sys_s

    def since(self, earlier: "CpuReading") -> ServerUse:
        return ServerUse(
            cpu_user_s=max(0.0, self.user_s - earlier.user_s),
            cpu_sys_s=max(0.0, self.sys_s - earlier.sys_s),
            means=self.means,
        )


def server_cpu(running: RunningStack) -> CpuReading:
    """Read the CPU time that a running stack has used since its start."""
    started, others = _started_cpu(running), tree_cpu([], running.found_pids())
    return CpuReading(started.user_s + others.user_s, started.sys_s + others.sys_s, started.means)


def _started_cpu(running: RunningStack) -> CpuReading:
    if running.group is not None:
        with suppress(OSError):
            user_s, sys_s = running.group.cpu()
            return CpuReading(user_s, sys_s, "cgroup-v2")
    return tree_cpu(running.wardens())


def _idle_cpu(running: RunningStack) -> CpuReading:
    """Read what a stack used, without a backend that it shares with the one that is loaded."""
    return server_cpu(running) if running.stack.runs_already else _started_cpu(running)


def idle_variants_cpu(scene: Scene) -> Generator[None, None, dict[str, float]]:
    """Report what the variants that should be idle used: work left over from their last slot."""
    before = {name: _idle_cpu(stack) for name, stack in scene.others.items()}
    yield
    return {
        name: _idle_cpu(stack).since(before[name]).cpu_s for name, stack in scene.others.items()
    }


def tree_cpu(wardens: Sequence[int], roots: Sequence[int] = ()) -> CpuReading:
    """Read the CPU time of all descendants of some wardens, without control groups.

    Of processes that were `found`, which no warden looks after, their own counts as well.
    """
    user_s = sys_s = 0.0
    for pid in [pid for root in roots for pid in (root, *_descendants(root))]:
        own_user_s, own_sys_s = _process_cpu(pid)
        user_s += own_user_s
        sys_s += own_sys_s
    for warden in wardens:
        # Orphans that ended were the warden's children in the end; its own work doesn't count.
        fields = _stat(warden)
        user_s += int(fields[13]) / TICKS_PER_S if fields else 0.0
        sys_s += int(fields[14]) / TICKS_PER_S if fields else 0.0
        for pid in _descendants(warden):
            own_user_s, own_sys_s = _process_cpu(pid)
            user_s += own_user_s
            sys_s += own_sys_s
    return CpuReading(user_s, sys_s, "procfs")


def _descendants(pid: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    return []


def _process_cpu(pid: int) -> tuple[float, float]:
    """User and system time of a process and of those of its children that it waited for."""
    fields = _stat(pid)
    if not fields:
        return 0.0, 0.0
    user, system, children_user, children_system = (int(field) for field in fields[11:15])
    with suppress(OSError):
        total_s = time.clock_gettime(_cpu_clock(pid))
        share = user / (user + system) if user + system else 0.5
        return (
            total_s * share + children_user / TICKS_PER_S,
            total_s * (1 - share) + children_system / TICKS_PER_S,
        )
    return (user + children_user) / TICKS_PER_S, (system + children_system) / TICKS_PER_S


def _cpu_clock(pid: int) -> int:
    """The clock of another process's CPU time, as clock_getcpuclockid(3) makes it on Linux."""
    return (~pid << 3) | 2


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on, `state`; none when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
