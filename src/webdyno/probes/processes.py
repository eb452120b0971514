"""Counters of a service's processes, from /proc/PID, and what their threads wait for.

Waits are sampled by the system call that each thread is in (/proc/PID/task/TID/syscall, for root
and for the server's user). Who waits for work isn't blocked: in event loops, for connections and
requests of clients, and on the addresses of locks where threads waited before there was a load.
"""

import os
import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from webdyno.core.kernel import kernel_lines
from webdyno.core.readings import BlockedBy, MemoryLimitUse, ServiceUse, StoppedUse
from webdyno.host.contained import ContainedProcess
from webdyno.host.control_group import ControlGroup
from webdyno.host.listening import unix_sockets
from webdyno.host.server_process import FoundProcess
from webdyno.probes.cpu import CpuReading, contained_cpu, tree_cpu
from webdyno.probes.scene import Part, Scene, is_stopped, number_after, read_quickly
from webdyno.servers.running import RunningStack

MINOR_FAULTS, MAJOR_FAULTS = 7, 9
"""Fields of /proc/PID/stat after the program's name: proc(5) fields 10 and 12."""
MOST_PROCESSES = 8
"""Most processes of a service that are checked: reading hundreds would interfere with what is
measured."""
MOST_THREADS = 32
"""Of each process, of which there are as many as others look at."""
Meaning = Literal["lock", "file lock", "read", "poll", "disk", "pause"]
_X86: dict[Meaning, tuple[int, ...]] = {
    "lock": (202,),  # futex
    "file lock": (73, 65, 220),  # flock, semop, semtimedop
    "read": (0, 19, 45, 47, 42),  # read, readv, recvfrom, recvmsg, connect
    "poll": (7, 271),  # poll, ppoll
    "disk": (74, 75, 17, 18, 26),  # fsync, fdatasync, pread64, pwrite64, msync
    "pause": (35, 230),  # nanosleep, clock_nanosleep
}
_VARIANT: dict[Meaning, tuple[int, ...]] = {
    "lock": (98,),
    "file lock": (32, 193, 192),
    "read": (63, 65, 207, 212, 203),
    "poll": (73,),
    "disk": (82, 83, 67, 68, 227),
    "pause": (101, 115),
}
CALLS: dict[int, Meaning] = {
    number: meaning
    for meaning, numbers in {"x86_64": _X86, "aarch64": _VARIANT}.get(
        platform.machine(), {}
    ).items()
    for number in numbers
}
"""System calls in which a thread waits, by their number on this machine."""
_ESTABLISHED, _LISTENING = "01", "0A"
_FD_BYTES, _FEW = 4, 4
"""Of a `struct pollfd`; so many descriptors are waited for by who has asked one backend."""


def service_use(scene: Scene) -> Generator[None, None, dict[str, ServiceUse]]:
    """Report what the processes of each of the loaded variant's services used, by role."""
    before = _read_services(scene.stack)
    yield
    after = _read_services(scene.stack)
    return {role: reading.since(before[role]) for role, reading in after.items()}


def memory_limit(scene: Scene) -> Generator[None, None, MemoryLimitUse | None]:
    """Report how near the loaded variant came to its memory limit; None without one."""
    before = scene.stack.memory()
    yield
    after = scene.stack.memory()
    return after.since(before) if after and before else None


def _read_services(stack: RunningStack) -> dict[str, "ServiceReading"]:
    return {
        role: ServiceReading.read(service_pids(stack, role), _service_cpu(stack, role))
        for role in stack.services()
    }


def service_pids(stack: RunningStack, role: str) -> list[int]:
    """Ask the control group, which knows at once; searching all of /proc takes 10 ms."""
    group, service = stack.group, stack.services()[role]
    if group is not None and not isinstance(service.process, FoundProcess):
        with suppress(OSError):
            entry = group.entry(role)  # containers have groups of their own below it
            files = entry.parent.rglob(entry.name) if service.is_container else [entry]
            return [int(pid) for file in files for pid in file.read_text().split()]
    return service.pids()


def _service_cpu(stack: RunningStack, role: str) -> CpuReading:
    group, process = stack.group, stack.services()[role].process
    if isinstance(process, FoundProcess):
        return tree_cpu([], process.roots())
    if group is not None:
        with suppress(OSError):
            return CpuReading(*ControlGroup(group.path / role).cpu(), means="cgroup-v2")
    if isinstance(process, ContainedProcess):
        return contained_cpu(process)
    return tree_cpu([process.warden_pid] if process else [])


@dataclass(frozen=True)
class ProcessReading:
    """One process since its start."""

    switches_voluntary: int
    switches_involuntary: int
    waited_for_cpu_ns: int
    faults_minor: int
    faults_major: int
    disk_bytes: tuple[int, int] | None
    """Read and written; None where we may not see it."""
    threads: int
    peak_rss_bytes: int

    @classmethod
    def read(cls, pid: int) -> "ProcessReading | None":
        """Read a process; None when it is gone."""
        folder = f"/proc/{pid}"
        try:
            stat = read_quickly(f"{folder}/stat").rpartition(b")")[2].split()
            status = read_quickly(f"{folder}/status")
            threads = number_after(b"Threads", status)
            of_threads = _of_thread(folder, status) if threads == 1 else _of_all_threads(folder)
        except OSError:
            return None
        return cls(
            switches_voluntary=of_threads.voluntary,
            switches_involuntary=of_threads.involuntary,
            waited_for_cpu_ns=of_threads.waited_for_cpu_ns,
            faults_minor=int(stat[MINOR_FAULTS]),
            faults_major=int(stat[MAJOR_FAULTS]),
            disk_bytes=_disk_bytes(folder),
            threads=threads,
            peak_rss_bytes=number_after(b"VmHWM", status) * 1024,
        )


@dataclass(frozen=True)
class ServiceReading:
    """All processes of a service, by their ids."""

    cpu: CpuReading
    processes: dict[int, ProcessReading]

    @classmethod
    def read(cls, pids: Iterable[int], cpu: CpuReading) -> "ServiceReading":
        """Read processes; those that have ended meanwhile are excluded."""
        processes = {pid: ProcessReading.read(pid) for pid in pids}
        return cls(cpu, {pid: process for pid, process in processes.items() if process})

    def since(self, earlier: "ServiceReading") -> ServiceUse:
        """Return what was used since an earlier reading; reads the memory as it is now."""
        pairs = [
            (process, earlier.processes.get(pid, NOTHING))
            for pid, process in self.processes.items()
        ]

        def growth(count: Callable[[ProcessReading], int]) -> int:
            """Add up how far a counter moved; one that stepped back is another process's."""
            return sum(max(count(now) - count(then), 0) for now, then in pairs)

        disk = [
            (now.disk_bytes, then.disk_bytes)
            for now, then in pairs
            if now.disk_bytes is not None and then.disk_bytes is not None
        ]
        seen = len(disk) == len(pairs)
        cpu = self.cpu.since(earlier.cpu)
        return ServiceUse(
            cpu_user_s=cpu.cpu_user_s,
            cpu_sys_s=cpu.cpu_sys_s,
            switches_voluntary=growth(lambda counters: counters.switches_voluntary),
            switches_involuntary=growth(lambda counters: counters.switches_involuntary),
            waited_for_cpu_s=growth(lambda counters: counters.waited_for_cpu_ns) / 1e9,
            faults_minor=growth(lambda counters: counters.faults_minor),
            faults_major=growth(lambda counters: counters.faults_major),
            disk_read_bytes=sum(max(a[0] - b[0], 0) for a, b in disk) if seen else None,
            disk_written_bytes=sum(max(a[1] - b[1], 0) for a, b in disk) if seen else None,
            processes=len(self.processes),
            threads=sum(process.threads for process in self.processes.values()),
            started=len(self.processes.keys() - earlier.processes.keys()),
            ended=len(earlier.processes.keys() - self.processes.keys()),
            pss_bytes=_pss_bytes(self.processes),
            peak_rss_bytes=sum(process.peak_rss_bytes for process in self.processes.values()),
        )


NOTHING = ProcessReading(0, 0, 0, 0, 0, (0, 0), 0, 0)
"""A process that hadn't started yet."""


class _SchedulerCounts(NamedTuple):
    """Of a thread, or summed over several."""

    voluntary: int
    involuntary: int
    waited_for_cpu_ns: int


def _of_thread(folder: str, status: bytes) -> _SchedulerCounts:
    try:
        waited_ns = int(read_quickly(f"{folder}/schedstat").split()[1])
    except (OSError, IndexError):  # a kernel without these counts has no such file, or an empty one
        waited_ns = 0
    return _SchedulerCounts(
        number_after(b"voluntary_ctxt_switches", status),
        number_after(b"nonvoluntary_ctxt_switches", status),
        waited_ns,
    )


def _of_all_threads(folder: str) -> _SchedulerCounts:
    counts = [_SchedulerCounts(0, 0, 0)]
    for thread in os.scandir(f"{folder}/task"):
        with suppress(OSError):
            counts.append(_of_thread(thread.path, read_quickly(f"{thread.path}/status")))
    return _SchedulerCounts(*map(sum, zip(*counts, strict=True)))


def _disk_bytes(folder: str) -> tuple[int, int] | None:
    with suppress(OSError):
        io = read_quickly(f"{folder}/io")
        return number_after(b"read_bytes", io), number_after(b"write_bytes", io)
    return None


def _pss_bytes(pids: Iterable[int]) -> int | None:
    """None where we may not see them."""
    total = 0
    for pid in pids:
        try:
            total += number_after(b"Pss", read_quickly(f"/proc/{pid}/smaps_rollup")) * 1024
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
    return total


def stopped_time(scene: Scene) -> Generator[None, None, StoppedUse]:
    """Report for how long processes stalled, as far as they are looked at."""
    client = [] if scene.client_pid is None else [scene.client_pid]
    servers = list[int]()
    for role in scene.stack.services():
        pids = service_pids(scene.stack, role)
        servers += pids[:: -(-len(pids) // MOST_PROCESSES) or 1]
    client_s = servers_s = last_s = 0.0

    def look(at_s: float) -> None:
        nonlocal client_s, servers_s, last_s
        since_s, last_s = at_s - last_s, at_s
        client_s += since_s * any(map(is_stopped, client))
        servers_s += since_s * any(map(is_stopped, servers))

    scene.sampler.add(look)
    yield
    return StoppedUse(client_s=client_s, servers_s=servers_s)


class _Waiting(NamedTuple):
    """A thread in a system call."""

    pid: int
    meaning: Meaning
    first: int
    """The call's first argument: an address, or a descriptor."""
    second: int


def blocked_threads(scene: Scene) -> Generator[None, None, Part]:
    """Report how many threads were blocked on average, by what; None where nobody may look."""
    pids = [
        pid
        for role in scene.stack.services()
        for pid in service_pids(scene.stack, role)[:MOST_PROCESSES]
    ]
    idle = {(each.pid, each.first) for each in _waiting(pids) if each.meaning == "lock"}
    seen, looks = Counter[BlockedBy](), 0

    def look(_: float) -> None:
        nonlocal looks
        looks += 1
        seen.update(what_blocks(pids, idle))

    scene.sampler.add(look)
    yield
    if not CALLS or not looks or not any(map(_may_look, pids)):
        return None
    return {what: many / looks for what, many in seen.items()}


def what_blocks(pids: list[int], idle: set[tuple[int, int]]) -> Iterator[BlockedBy]:
    """Yield what each blocked thread waits for, at this moment.

    `idle`: processes and addresses of locks where threads wait that have nothing to do.
    """
    outgoing: dict[int, set[str]] = {}
    for each in _waiting(pids):
        if each.meaning in {"lock", "file lock"}:
            if (each.pid, each.first) not in idle:
                yield "locks"
        elif each.meaning == "disk":
            yield "disks"
        elif each.meaning == "pause":
            yield "pauses"
        elif (file := _file_of(each)) is not None:
            if file.startswith("/") and not file.startswith("/dev/"):
                yield "disks"
            elif file.startswith("socket:"):
                if each.pid not in outgoing:
                    outgoing[each.pid] = _outgoing(each.pid)
                if file[len("socket:[") : -1] in outgoing[each.pid]:
                    yield "backends"


def _waiting(pids: list[int]) -> Iterator[_Waiting]:
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
            for thread in islice(threads, MOST_THREADS):
                with suppress(OSError, ValueError, IndexError):
                    words = read_quickly(f"{thread.path}/syscall").split()
                    if words[0].isdigit() and (meaning := CALLS.get(int(words[0]))):
                        yield _Waiting(pid, meaning, int(words[1], 16), int(words[2], 16))


def _file_of(each: _Waiting) -> str | None:
    """What a thread reads from, as its process's folder of descriptors names it."""
    descriptor = each.first
    try:
        if each.meaning == "poll":
            if not 0 < each.second <= _FEW:
                return None
            with Path(f"/proc/{each.pid}/mem").open("rb", buffering=0) as memory:
                memory.seek(each.first)
                descriptor = int.from_bytes(memory.read(_FD_BYTES), "little")
        return str(Path(f"/proc/{each.pid}/fd/{descriptor}").readlink())
    except (OSError, ValueError, OverflowError):
        return None


def _outgoing(pid: int) -> set[str]:
    """Inodes of connections that a process's network has opened to others.

    Of TCP those whose own port nobody listens on, of Unix sockets those without a path.
    """
    rows = [line.split() for kind in ("tcp", "tcp6") for line in _lines(f"/proc/{pid}/net/{kind}")]
    ports = {row[1].rpartition(":")[2] for row in rows if row[3] == _LISTENING}
    outgoing = {
        row[9] for row in rows if row[3] == _ESTABLISHED and row[1].rpartition(":")[2] not in ports
    }
    with suppress(OSError):
        outgoing |= {
            each.inode for each in unix_sockets(pid) if each.is_connected and not each.name
        }
    return outgoing


def _lines(path: str) -> list[str]:
    with suppress(OSError):
        return kernel_lines(Path(path))[1:]
    return []


def _may_look(pid: int) -> bool:
    with suppress(OSError):
        return bool(read_quickly(f"/proc/{pid}/syscall"))
    return False
