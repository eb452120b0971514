"""The host as vmstat and sar see it: CPU time by kind, switches, run queue, load, pressure."""

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from webdyno.model.machine import CpuSplit
from webdyno.model.readings import CpuUse, HostSample, HostUse, PressureUse
from webdyno.probe.proc_files import PROC, read_quickly

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SAMPLE_EVERY_S = 0.1

CpuTicks = tuple[int, int, int, int, int]
"""user, system, interrupts, idle, steal."""


@dataclass(frozen=True)
class Stat:
    """/proc/stat: ticks of each CPU by kind, and what the whole host counts."""

    cpus: dict[int, CpuTicks]
    context_switches: int
    running: int

    @classmethod
    def read(cls) -> "Stat":
        """Read it."""
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


class HostProbe:
    """Watches the host while it is entered: reads both edges, samples in between."""

    def __init__(self, split: CpuSplit) -> None:
        self._split = split
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="host-probe", daemon=True)
        self._samples: list[tuple[float, Stat]] = []

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._pressure = _pressure()
        self._began_s = time.monotonic()
        self._first = Stat.read()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End watching."""
        self._last = Stat.read()
        self._ended_s = time.monotonic()
        self._stop.set()
        self._thread.join()

    def use(self) -> HostUse:
        """Give what was seen, once it has been left."""
        return HostUse(
            took_s=self._ended_s - self._began_s,
            servers=self._last.use_since(self._first, self._split.servers),
            client=self._last.use_since(self._first, self._split.client),
            context_switches=self._last.context_switches - self._first.context_switches,
            load_1m=float((PROC / "loadavg").read_text().split()[0]),
            pressure=_pressure_since(self._pressure),
            samples=self._host_samples(),
        )

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY_S):
            self._samples.append((time.monotonic() - self._began_s, Stat.read()))

    def _host_samples(self) -> list[HostSample]:
        earlier = self._first
        samples = []
        for at_s, stat in self._samples:
            servers = stat.use_since(earlier, self._split.servers)
            client = stat.use_since(earlier, self._split.client)
            samples.append(
                HostSample(
                    at_s=round(at_s, 4),
                    running=stat.running,
                    servers_busy=_busy(servers),
                    client_busy=_busy(client),
                )
            )
            earlier = stat
        return samples


def _busy(use: CpuUse) -> float:
    return round(1 - use.idle_s / use.total_s, 3) if use.total_s else 0.0


def _pressure() -> dict[str, float]:
    """Seconds of waiting since boot, by resource; none where the kernel doesn't tell."""
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
