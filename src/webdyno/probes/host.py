"""The host as vmstat and sar see it: CPU time by kind, switches, run queue, load, pressure.

And whether the kernel keeps time that isn't a program's own apart from that program's CPU time:
what interrupts took, and what the hypervisor gave to others.
"""

import gzip
import os
import platform
import socket
import time
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from webdyno.core.machine import CpuSplit
from webdyno.core.readings import CpuUse, HostSample, HostUse, PressureUse
from webdyno.probes.proc_files import PROC, read_quickly
from webdyno.probes.scene import Scene

TICKS_PER_S = os.sysconf("SC_CLK_TCK")

CpuTicks = tuple[int, int, int, int, int]
"""user, system, interrupts, idle, steal."""
ROUNDS, ROUND_S = 400, 0.001
"""Rounds are short, so that other programs leave some of them alone."""
PACKET = bytes(1_024)
SURELY_MISSING = 0.05
"""Share of a round missing from our CPU time, although we were busy all the time, that surely isn't
noise."""
BUILT_WITH = b"CONFIG_PARAVIRT_TIME_ACCOUNTING=y"


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
        """Give how some CPUs were used since an earlier reading."""
        totals = [0.0] * 5
        for cpu in cpus:
            if cpu in self.cpus and cpu in earlier.cpus:
                for kind, (now, then) in enumerate(
                    zip(self.cpus[cpu], earlier.cpus[cpu], strict=True)
                ):
                    # Idle and steal counters may step back by a tick.
                    totals[kind] += max(0, now - then) / TICKS_PER_S
        user_s, system_s, interrupts_s, idle_s, steal_s = totals
        return CpuUse(
            user_s=user_s,
            system_s=system_s,
            interrupts_s=interrupts_s,
            idle_s=idle_s,
            steal_s=steal_s,
        )


def probe(scene: Scene) -> Generator[None, None, HostUse]:
    """Report how the host's CPUs were used, at the slot's edges and inside it.

    Of servers on another machine none of these CPUs are: what they do says nothing of them.
    """
    split = scene.testbed.split
    if scene.stack.is_elsewhere:
        split = split.replace(servers=[])
    samples: list[tuple[float, Stat]] = []
    scene.sampler.add(lambda at_s: samples.append((at_s, Stat.read())))
    pressure, began_s, first = _pressure(), time.monotonic(), Stat.read()
    yield
    last, ended_s = Stat.read(), time.monotonic()
    return HostUse(
        took_s=ended_s - began_s,
        servers=last.use_since(first, split.servers),
        busiest_server_cpu=busiest(first, last, split.servers),
        client=last.use_since(first, split.client),
        context_switches=last.context_switches - first.context_switches,
        load_1m=float((PROC / "loadavg").read_text().split()[0]),
        pressure=_pressure_since(pressure),
        steal_apart=stolen_time_kept_apart(),
        samples=host_samples(first, samples, split),
    )


def host_samples(
    first: Stat, samples: Iterable[tuple[float, Stat]], split: CpuSplit
) -> list[HostSample]:
    """Give how busy the CPUs were between one sample and the next."""
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
    """Give the share of the time that the busiest of some CPUs wasn't idle; None without any."""
    return max((_busy(last.use_since(first, [cpu])) for cpu in cpus), default=None)


def _busy(use: CpuUse) -> float:
    return round(1 - use.idle_s / use.total_s, 3) if use.total_s else 0.0


def _pressure() -> dict[str, float]:
    """Seconds of waiting since boot, by resource; none where the kernel doesn't say."""
    totals = {}
    for resource in ("cpu", "memory", "io"):
        with suppress(OSError, ValueError):
            some = (PROC / "pressure" / resource).read_text().splitlines()[0]
            totals[resource] = int(some.rpartition("total=")[2]) / 1e6
    return totals


def _pressure_since(earlier: dict[str, float]) -> PressureUse | None:
    now = _pressure()
    if len(now) < 3 or len(earlier) < 3:
        return None
    return PressureUse(
        cpu_s=now["cpu"] - earlier["cpu"],
        memory_s=now["memory"] - earlier["memory"],
        io_s=now["io"] - earlier["io"],
    )


@cache
def interrupts_kept_apart() -> bool:
    """Report by trying it once: packets to ourselves, and what of their time is in our CPU time.

    Kernels built with IRQ_TIME_ACCOUNTING don't count as a program's CPU time what its packets cost
    in softirqs, a good part of the work of a web server.

    Other programs can only take more from it, so one round that misses little is enough. (From
    what /proc/stat and a slot's load say, other programs' work can't be distinguished from
    interrupts.)
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
    """Report it; False where the kernel's configuration can't be read, as in many containers.

    One built with PARAVIRT_TIME_ACCOUNTING takes stolen time off the clock by which tasks are
    charged (kernel/sched/core.c, update_rq_clock_task), wherever the hypervisor reports it at all.
    Else what ran when its CPU was stolen is charged for all of it. Trying it out, as with
    interrupts, would take load on all CPUs and much of it stolen meanwhile; so it is what the
    kernel says of how it was built.
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
