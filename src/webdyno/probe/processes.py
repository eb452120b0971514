"""Counters of a service's processes, from /proc/PID."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from webdyno.model.readings import ServiceUse
from webdyno.probe.cpu import CpuReading
from webdyno.probe.proc_files import number_after, read_quickly

MINOR_FAULTS, MAJOR_FAULTS = 7, 9
"""Fields of /proc/PID/stat after the program's name: proc(5) fields 10 and 12."""


@dataclass(frozen=True)
class ProcessReading:
    """One process since its start."""

    switches_voluntary: int
    switches_involuntary: int
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
            threads = number_after(b"\nThreads:", status)
            voluntary, involuntary = _switches(status) if threads == 1 else _all_switches(folder)
        except OSError:
            return None
        return cls(
            switches_voluntary=voluntary,
            switches_involuntary=involuntary,
            faults_minor=int(stat[MINOR_FAULTS]),
            faults_major=int(stat[MAJOR_FAULTS]),
            disk_bytes=_disk_bytes(folder),
            threads=threads,
            peak_rss_bytes=number_after(b"VmHWM:", status) * 1024,
        )


@dataclass(frozen=True)
class ServiceReading:
    """All processes of a service, by their ids."""

    cpu: CpuReading
    processes: dict[int, ProcessReading]

    @classmethod
    def read(cls, pids: Iterable[int], cpu: CpuReading) -> "ServiceReading":
        """Read processes; those that have ended meanwhile are left out."""
        found = {pid: ProcessReading.read(pid) for pid in pids}
        return cls(cpu, {pid: process for pid, process in found.items() if process})

    def since(self, earlier: "ServiceReading") -> ServiceUse:
        """Give what was used since an earlier reading; reads the memory as it is now."""
        pairs = [
            (process, earlier.processes.get(pid, NOTHING))
            for pid, process in self.processes.items()
        ]
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
            switches_voluntary=sum(a.switches_voluntary - b.switches_voluntary for a, b in pairs),
            switches_involuntary=sum(
                a.switches_involuntary - b.switches_involuntary for a, b in pairs
            ),
            faults_minor=sum(a.faults_minor - b.faults_minor for a, b in pairs),
            faults_major=sum(a.faults_major - b.faults_major for a, b in pairs),
            disk_read_bytes=sum(a[0] - b[0] for a, b in disk) if seen else None,
            disk_written_bytes=sum(a[1] - b[1] for a, b in disk) if seen else None,
            processes=len(self.processes),
            threads=sum(process.threads for process in self.processes.values()),
            started=len(self.processes.keys() - earlier.processes.keys()),
            ended=len(earlier.processes.keys() - self.processes.keys()),
            pss_bytes=_pss_bytes(self.processes),
            peak_rss_bytes=sum(process.peak_rss_bytes for process in self.processes.values()),
        )


NOTHING = ProcessReading(0, 0, 0, 0, (0, 0), 0, 0)
"""A process that hadn't started yet."""


def _switches(status: bytes) -> tuple[int, int]:
    """Voluntary and involuntary ones: of a thread, or of the first thread of a process."""
    return (
        number_after(b"\nvoluntary_ctxt_switches:", status),
        number_after(b"\nnonvoluntary_ctxt_switches:", status),
    )


def _all_switches(folder: str) -> tuple[int, int]:
    """Sum over a process's living threads."""
    voluntary = involuntary = 0
    for thread in os.scandir(f"{folder}/task"):
        with suppress(OSError):
            of_thread = _switches(read_quickly(f"{thread.path}/status"))
            voluntary += of_thread[0]
            involuntary += of_thread[1]
    return voluntary, involuntary


def _disk_bytes(folder: str) -> tuple[int, int] | None:
    with suppress(OSError):
        io = read_quickly(f"{folder}/io")
        return number_after(b"\nread_bytes:", io), number_after(b"\nwrite_bytes:", io)
    return None


def _pss_bytes(pids: Iterable[int]) -> int | None:
    """Add up proportional set sizes; None where we may not see them."""
    total = 0
    for pid in pids:
        try:
            total += number_after(b"\nPss:", read_quickly(f"/proc/{pid}/smaps_rollup")) * 1024
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
    return total
