"""All probes around one slot: `with SlotProbe(...) as probe: load()`, then `probe.readings()`.

A probe is a function which `PROBES` names; `scene.py` says what it may do. In the course of a long
stretch of load `Course` reads what the servers use, hold and lose.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Self

from webdyno.core.looks import ServerSample
from webdyno.core.readings import Readings
from webdyno.core.records import ServerUse
from webdyno.host.this_machine import Testbed
from webdyno.probes import cpu, network, processes, status
from webdyno.probes.cpu import (
    ClientReading,
    Stat,
    interrupts_kept_apart,
    server_cpu,
)
from webdyno.probes.processes import service_pids
from webdyno.probes.scene import Part, Probe, Sampler, Scene, is_stopped, read_quickly
from webdyno.servers.running import RunningStack

PROBES: dict[str, Probe] = {
    "databases": status.database_use,
    "status": status.status_counts,
    "other_variants_cpu_s": cpu.idle_variants_cpu,
    "memory": processes.memory_limit,
    "services": processes.service_use,
    "network": network.network_use,
    "stopped": processes.stopped_time,
    "client_waiting": cpu.client_waiting,
    "host": cpu.host_use,
}
"""By the name of their part of the readings. What costs most is read farthest from the load: in
this order before the slot, in the opposite one after it."""
BLOCKED = "blocked"
"""A further one, where it is asked for: it reads what each thread waits for."""
MEMORY_EVERY_S = 0.25
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MOST_LOOKED_AT = 8
"""Most processes that are checked for being stopped and for waiting, and most threads of each."""
MOST_PROCESSES = 64
"""Most processes whose memory is read: reading hundreds would interfere with what is measured."""


class SlotProbe:
    """Reads everything before and after the load on one variant."""

    def __init__(
        self,
        variant: str,
        stacks: Mapping[str, RunningStack],
        testbed: Testbed,
        client_pid: int | None,
        *,
        sees_blocked: bool = False,
    ) -> None:
        """`stacks` are all variants that are up on the testbed, `variant` names the loaded one."""
        others = {name: stack for name, stack in stacks.items() if name != variant}
        self._scene = Scene(stacks[variant], others, testbed, client_pid)
        self._probes = PROBES | ({BLOCKED: processes.blocked_threads} if sees_blocked else {})
        self._interrupts_apart = interrupts_kept_apart()
        self._running: dict[str, Generator[None, None, Part]] = {}
        self._parts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name, probe in self._probes.items():
            self._running[name] = probe(self._scene)
            next(self._running[name])
        self._scene.sampler.start()
        self._cpu = server_cpu(self._scene.stack)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Read everything again, unless the slot failed."""
        if kind is None:
            self._used = server_cpu(self._scene.stack).since(self._cpu)
        self._scene.sampler.stop(kind)
        for name, running in reversed(self._running.items()):
            if kind is None:
                self._parts[name] = _end(running)
            running.close()

    def servers(self) -> ServerUse:
        """CPU time of the loaded variant's servers."""
        if not self._interrupts_apart:
            return self._used
        interrupts_s = self._parts["host"].servers.interrupts_s
        return self._used.replace(interrupts_s=interrupts_s)

    def readings(self) -> Readings:
        """Everything else."""
        return Readings.model_validate(
            {
                **{name: part for name, part in self._parts.items() if part is not None},
                "front": self._scene.stack.stack.front,
                "shared_cpus": self._scene.testbed.split.shared,
            }
        )


def _end(running: Generator[None, None, Part]) -> Any:  # noqa: ANN401 (the readings check it)
    """Let a probe read the second time, and return what it says."""
    try:
        next(running)
    except StopIteration as ended:
        return ended.value
    raise RuntimeError("a probe yields once")


class Course:
    """Reads a stack every so many seconds while it is entered."""

    def __init__(
        self, stack: RunningStack, testbed: Testbed, client_pid: int | None, every_s: float
    ) -> None:
        self._stack, self._client_pid = stack, client_pid
        self._cpus = [] if stack.is_elsewhere else testbed.split.servers
        self.samples: list[ServerSample] = []
        self._sampler = Sampler(every_s)
        self._sampler.add(self._look)
        self._memory_due_s = 0.0
        self._pids: list[int] = []

    def __enter__(self) -> Self:
        self._used, self._stat = server_cpu(self._stack), Stat.read()
        self._client = ClientReading.read(self._client_pid)
        self._look(0.0)
        self._sampler.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._sampler.stop(kind)

    def _look(self, at_s: float) -> None:
        memory_bytes: int | None = None
        descriptors: int | None = None
        if at_s >= self._memory_due_s:
            self._pids = all_pids(self._stack)
            self._memory_due_s = at_s + MEMORY_EVERY_S
            if 0 < len(self._pids) <= MOST_PROCESSES:
                memory_bytes, descriptors = _memory_and_descriptors(self._pids)
        used = Stat.read().use_since(self._stat, self._cpus)
        self.samples.append(
            ServerSample(
                at_s=at_s,
                cpu_s=server_cpu(self._stack).since(self._used).cpu_s,
                busy_s=used.busy_s,
                stolen_s=used.steal_s,
                waited_s=_waited_s(self._pids[:MOST_LOOKED_AT]),
                client_waited_s=ClientReading.read(self._client_pid).waited_since(self._client),
                stopped=any(is_stopped(pid) for pid in self._pids[:MOST_LOOKED_AT]),
                memory_bytes=memory_bytes,
                descriptors=descriptors,
            )
        )


def all_pids(stack: RunningStack) -> list[int]:
    """Return the processes of a stack, the first one of each service first."""
    return in_turns([service_pids(stack, role) for role in stack.services()])


def in_turns(of_services: Sequence[Sequence[int]]) -> list[int]:
    """Return the first process of each service, then the second ones, and so on."""
    return [pid for turn in zip_longest(*of_services) for pid in turn if pid is not None]


def _waited_s(pids: list[int]) -> float:
    """0 where the kernel doesn't say."""
    total_ns = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError), os.scandir(f"/proc/{pid}/task") as threads:
            for thread in islice(threads, MOST_LOOKED_AT):
                total_ns += int(read_quickly(f"{thread.path}/schedstat").split()[1])
    return total_ns / 1e9


def _memory_and_descriptors(pids: list[int]) -> tuple[int, int | None]:
    """Resident memory, and open files and connections, which kernels before 6.2 don't count."""
    memory_bytes = descriptors = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            memory_bytes += int(read_quickly(f"/proc/{pid}/statm").split()[1]) * PAGE_BYTES
            descriptors += Path(f"/proc/{pid}/fd").stat().st_size
    return memory_bytes, descriptors or None
