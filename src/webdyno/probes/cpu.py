"""CPU time: of a stack's whole process tree, of the host, and what the load generator waited for.

A control group counts whatever ran in it, to the microsecond. Without one the tree in /proc is
added up: live processes to the nanosecond (by their CPU clocks, threads that ended included), ended
children in clock ticks of usually 10 ms, and as far as their parents waited for them.
"""

import gzip
import os
import platform
import socket
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Literal, Self

from webdyno.core.readings import CpuUse, HostSample, HostUse, PressureUse
from webdyno.core.records import ServerUse
from webdyno.core.testbed import CpuSplit
from webdyno.host.contained import ContainedProcess
from webdyno.host.control_group import ControlGroup
from webdyno.host.server_process import pids_below
from webdyno.probes.scene import PROC, Sampler, Scene, is_stopped, read_quickly
from webdyno.servers.running import RunningStack

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CpuTicks = tuple[int, int, int, int, int]
"""user, system, interrupts, idle, steal."""
ROUNDS, ROUND_S = 400, 0.001
"""Rounds are short, so that other programs leave some of them alone."""
PACKET = bytes(1_024)
RESOURCES = ("cpu", "memory", "io")
"""Of which the kernel counts the pressure."""
SURELY_MISSING = 0.05
"""Share of a round missing from our CPU time, although we were busy all the time, that surely isn't
noise."""
BUILT_WITH = b"CONFIG_PARAVIRT_TIME_ACCOUNTING=y"


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
    contained, wardens = running.contained(), running.wardens()
    readings = [contained_cpu(process) for process in contained]
    if wardens or not readings:
        readings.append(tree_cpu(wardens))
    return CpuReading(
        sum(reading.user_s for reading in readings),
        sum(reading.sys_s for reading in readings),
        readings[-1].means,
    )


def contained_cpu(process: ContainedProcess) -> CpuReading:
    """Read the CPU time of containers that a daemon runs."""
    if groups := process.groups():
        with suppress(OSError):
            times = [ControlGroup(group).cpu() for group in groups]
            user_s, sys_s = (sum(kind) for kind in zip(*times, strict=True))
            return CpuReading(user_s, sys_s, "cgroup-v2")
    return tree_cpu([], process.roots())


def _idle_cpu(running: RunningStack) -> CpuReading:
    """Without a backend that it shares with the stack that is loaded."""
    return server_cpu(running) if running.stack.runs_already else _started_cpu(running)


def idle_variants_cpu(scene: Scene) -> Generator[None, None, dict[str, float]]:
    """Report what the variants that should be idle used: work left over from their last slot."""
    before = {name: _idle_cpu(stack) for name, stack in scene.others.items()}
    yield
    return {
        name: _idle_cpu(stack).since(before[name]).cpu_s for name, stack in scene.others.items()
    }


def tree_cpu(wardens: Sequence[int], roots: Sequence[int] = ()) -> CpuReading:
    """Read from /proc the CPU time of all descendants of wardens, and of `roots` with theirs."""
    times_s = list[tuple[float, float]]()
    for warden in wardens:
        # Orphans that ended were the warden's children in the end; its own work doesn't count.
        if fields := _stat(warden):
            times_s.append((int(fields[13]) / TICKS_PER_S, int(fields[14]) / TICKS_PER_S))
    pids = [*roots, *(pid for top in (*wardens, *roots) for pid in pids_below(top))]
    times_s += [_process_cpu(pid) for pid in pids]
    return CpuReading(sum(user_s for user_s, _ in times_s), sum(s for _, s in times_s), "procfs")


def _process_cpu(pid: int) -> tuple[float, float]:
    """User and system time of a process and of those of its children that it waited for."""
    fields = _stat(pid)
    if not fields:
        return 0.0, 0.0
    user, system, children_user, children_system = (int(field) for field in fields[11:15])
    with suppress(OSError):
        # The clock of another process's CPU time, as clock_getcpuclockid(3) makes it on Linux.
        total_s = time.clock_gettime((~pid << 3) | 2)
        share = user / (user + system) if user + system else 0.5
        return (
            total_s * share + children_user / TICKS_PER_S,
            total_s * (1 - share) + children_system / TICKS_PER_S,
        )
    return (user + children_user) / TICKS_PER_S, (system + children_system) / TICKS_PER_S


def _stat(pid: int) -> list[bytes]:
    """Fields of /proc/PID/stat from the third on, `state`; none when the process is gone."""
    try:
        return read_quickly(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


@dataclass(frozen=True)
class Stat:
    """/proc/stat: ticks of each CPU by kind, and what the whole host counts."""

    cpus: dict[int, CpuTicks]
    context_switches: int
    running: int

    @classmethod
    def read(cls) -> "Stat":
        return cls.parse(read_quickly("/proc/stat").decode())

    @classmethod
    def parse(cls, text: str) -> "Stat":
        """Parse its text: proc(5)."""
        cpus: dict[int, CpuTicks] = {}
        single: dict[str, int] = {}
        for line in text.splitlines():
            name, _, rest = line.partition(" ")
            if name.startswith("cpu") and name != "cpu":
                user, nice, system, idle, waiting, hard, soft, steal = map(int, rest.split()[:8])
                cpus[int(name[3:])] = (user + nice, system, hard + soft, idle + waiting, steal)
            elif name in {"ctxt", "procs_running"}:
                single[name] = int(rest)
        return cls(cpus, single["ctxt"], single["procs_running"])

    def use_since(self, earlier: "Stat", cpus: Iterable[int]) -> CpuUse:
        """Return how some CPUs were used since an earlier reading."""
        totals = [0.0] * 5
        for cpu in self.cpus.keys() & earlier.cpus.keys() & set(cpus):
            # Idle and steal counters may step back by a tick.
            ticks = zip(self.cpus[cpu], earlier.cpus[cpu], strict=True)
            for kind, (now, then) in enumerate(ticks):
                totals[kind] += max(0, now - then) / TICKS_PER_S
        user_s, system_s, interrupts_s, idle_s, steal_s = totals
        return CpuUse(
            user_s=user_s,
            system_s=system_s,
            interrupts_s=interrupts_s,
            idle_s=idle_s,
            steal_s=steal_s,
        )


def host_use(scene: Scene) -> Generator[None, None, HostUse]:
    """Report how the host's CPUs were used, at the slot's edges and inside it."""
    split = scene.testbed.split
    if scene.stack.is_elsewhere:
        split = split.replace(servers=[])
    samples: list[tuple[float, Stat]] = []
    scene.sampler.add(lambda at_s: samples.append((at_s, Stat.read())))
    pressure, began_s, first = _pressure(), time.monotonic(), Stat.read()
    yield
    last, ended_s = Stat.read(), time.monotonic()
    used = {
        f"{name}_s": now - pressure[name] for name, now in _pressure().items() if name in pressure
    }
    return HostUse(
        took_s=ended_s - began_s,
        servers=last.use_since(first, split.servers),
        busiest_server_cpu=busiest(first, last, split.servers),
        client=last.use_since(first, split.client),
        context_switches=last.context_switches - first.context_switches,
        load_1m=float((PROC / "loadavg").read_text().split()[0]),
        pressure=PressureUse(**used) if len(used) == len(RESOURCES) else None,
        steal_apart=stolen_time_kept_apart(),
        samples=host_samples(first, samples, split),
    )


def host_samples(
    first: Stat, samples: Iterable[tuple[float, Stat]], split: CpuSplit
) -> list[HostSample]:
    """Return how busy the CPUs were between one sample and the next."""
    earlier, readings = first, []
    for at_s, stat in samples:
        readings.append(
            HostSample(
                at_s=round(at_s, 4),
                running=stat.running,
                servers_busy=_busy(stat.use_since(earlier, split.servers)),
                client_busy=_busy(stat.use_since(earlier, split.client)),
            )
        )
        earlier = stat
    return readings


def busiest(first: Stat, last: Stat, cpus: Iterable[int]) -> float | None:
    """Return the share of the time that the busiest of some CPUs wasn't idle; None without any."""
    return max((_busy(last.use_since(first, [cpu])) for cpu in cpus), default=None)


def _busy(use: CpuUse) -> float:
    return round(1 - use.idle_s / use.total_s, 3) if use.total_s else 0.0


def _pressure() -> dict[str, float]:
    """Seconds of waiting since boot, by resource; none where the kernel doesn't say."""
    totals = {}
    for resource in RESOURCES:
        with suppress(OSError, ValueError):
            some = (PROC / "pressure" / resource).read_text().splitlines()[0]
            totals[resource] = int(some.rpartition("total=")[2]) / 1e6
    return totals


@cache
def interrupts_kept_apart() -> bool:
    """Return whether the kernel keeps interrupts out of a program's CPU time, tried once.

    Kernels built with IRQ_TIME_ACCOUNTING don't count as a program's CPU time what its packets cost
    in softirqs, a good part of the work of a web server. So packets are sent to ourselves. Other
    programs can only take more from our CPU time, so one round that misses little is enough.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ourselves:
        ourselves.bind(("127.0.0.1", 0))
        ourselves.connect(ourselves.getsockname())
        return all(_missing_share(ourselves) > SURELY_MISSING for _ in range(ROUNDS))


def _missing_share(ourselves: socket.socket) -> float:
    began_s, cpu_s = time.perf_counter(), time.thread_time()
    while (took_s := time.perf_counter() - began_s) < ROUND_S:
        ourselves.send(PACKET)
        ourselves.recv(len(PACKET))
    return 1 - (time.thread_time() - cpu_s) / took_s


@cache
def stolen_time_kept_apart() -> bool:
    """Return the same of stolen time; False where the kernel's configuration can't be read.

    One built with PARAVIRT_TIME_ACCOUNTING takes stolen time off the clock by which tasks are
    charged (kernel/sched/core.c, update_rq_clock_task), wherever the hypervisor reports it at all.
    Else what ran when its CPU was stolen is charged for all of it. Trying it out, as with
    interrupts, would take load on all CPUs and much of it stolen meanwhile.
    """
    return says_so(Path("/"), platform.release())


def says_so(root: Path, release: str) -> bool:
    """Look where kernels and distributions leave the configuration."""
    places = (
        root / "proc/config.gz",
        root / f"boot/config-{release}",
        root / f"lib/modules/{release}/config",
    )
    for place in places:
        with suppress(OSError):
            text = place.read_bytes()
            return BUILT_WITH in (gzip.decompress(text) if place.suffix == ".gz" else text)
    return False


def client_waiting(scene: Scene) -> Generator[None, None, float | None]:
    """Report how long a thread of the load generator waited for its CPU, as a share of the slot."""
    before, began_s = ClientReading.read(scene.client_pid), monotonic()
    yield
    ended_s = monotonic()
    return ClientReading.read(scene.client_pid).share_since(before, ended_s - began_s)


class ClientWatch:
    """Watches a load generator on a host without servers, while it is entered."""

    def __init__(self, cpus: Sequence[int], pid: int | None) -> None:
        """Watch a process on some CPUs; None where it runs within slots only."""
        self._cpus, self._pid = cpus, pid
        self.stopped_s = 0.0
        """In which somebody had stopped it."""

    def __enter__(self) -> Self:
        self._last_s = 0.0
        self._sampler = Sampler()
        self._sampler.add(self._look)
        self._sampler.start()
        self._began_s, self._before = monotonic(), ClientReading.read(self._pid)
        self._stat = Stat.read()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.cpu = Stat.read().use_since(self._stat, self._cpus)
        """How its CPUs were used."""
        took_s = monotonic() - self._began_s
        self.waiting = ClientReading.read(self._pid).share_since(self._before, took_s)
        """As `Readings.client_waiting`."""
        self._sampler.stop(kind)

    def _look(self, at_s: float) -> None:
        since_s, self._last_s = at_s - self._last_s, at_s
        if self._pid is not None:
            self.stopped_s += since_s * is_stopped(self._pid)


@dataclass(frozen=True)
class ClientReading:
    """Nanoseconds that each thread has waited while it could have run, by thread id.

    The kernel counts it in /proc/PID/task/TID/schedstat, waiting for a CPU quota included.
    """

    waited_ns: dict[int, int]

    @classmethod
    def read(cls, pid: int | None) -> "ClientReading":
        """Read all threads of a process; empty where the kernel doesn't say."""
        waited = {}
        with suppress(OSError):
            if pid is not None:
                for task in (PROC / str(pid) / "task").iterdir():
                    _, delay, _ = (task / "schedstat").read_text().split()
                    waited[int(task.name)] = int(delay)
        return cls(waited)

    def share_since(self, earlier: "ClientReading", took_s: float) -> float | None:
        """Return the share of the time in which the thread that waited most did so."""
        if not self.waited_ns or took_s <= 0:
            return None
        return min(self.waited_since(earlier) / took_s, 1.0)

    def waited_since(self, earlier: "ClientReading") -> float:
        """Return the seconds for which the thread that waited most did so; 0 where nobody knows."""
        waits = (now - earlier.waited_ns.get(thread, 0) for thread, now in self.waited_ns.items())
        return max(waits, default=0) / 1e9
