"""What threads of servers wait for, sampled: a lock, a backend, a disk, a pause of their own.

By the system call that each is in (/proc/PID/task/TID/syscall, for root and for the server's user).
Who waits for work isn't blocked: in event loops, for connections and requests of clients, and on
the addresses of locks where threads waited before there was a load.
"""

import os
import platform
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from webdyno.core.readings import BlockedBy
from webdyno.probes.proc_files import read_quickly
from webdyno.probes.processes import MOST_PROCESSES, service_pids
from webdyno.probes.scene import Part, Scene

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
_ESTABLISHED, _LISTENING, _CONNECTED = "01", "0A", "03"
_FD_BYTES, _FEW = 4, 4
"""Of a `struct pollfd`; so many descriptors are waited for by who has asked one backend."""


class _Waiting(NamedTuple):
    """A thread in a system call."""

    pid: int
    meaning: Meaning
    first: int
    """The call's first argument: an address, or a descriptor."""
    second: int


def probe(scene: Scene) -> Generator[None, None, Part]:
    """Report how many threads were blocked on average, by what; None where nobody may look."""
    pids = [
        pid
        for role, service in scene.stack.services().items()
        for pid in service_pids(scene.stack.group, role, service)[:MOST_PROCESSES]
    ]
    idle = {(each.pid, each.first) for each in _waiting(pids) if each.meaning == "lock"}
    seen, looks = Counter[BlockedBy](), 0

    def look(_: float) -> None:
        nonlocal looks
        looks += 1
        seen.update(blocked(pids, idle))

    scene.sampler.add(look)
    yield
    if not CALLS or not looks or not _may_look(pids):
        return None
    return {what: many / looks for what, many in seen.items()}


def blocked(pids: list[int], idle: set[tuple[int, int]]) -> Iterator[BlockedBy]:
    """Give what each blocked thread waits for, at this moment.

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
    """Name what a thread reads from, as its process's folder of descriptors does."""
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
    """Give the inodes of connections that a process's network has opened to others.

    Of TCP those whose own port nobody listens on, of Unix sockets those without a path.
    """
    rows = [line.split() for kind in ("tcp", "tcp6") for line in _lines(f"/proc/{pid}/net/{kind}")]
    ports = {row[1].rpartition(":")[2] for row in rows if row[3] == _LISTENING}
    outgoing = {
        row[9] for row in rows if row[3] == _ESTABLISHED and row[1].rpartition(":")[2] not in ports
    }
    unix = (line.split() for line in _lines(f"/proc/{pid}/net/unix"))
    return outgoing | {row[6] for row in unix if row[5] == _CONNECTED and len(row) == 7}


def _lines(path: str) -> list[str]:
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    return []


def _may_look(pids: list[int]) -> bool:
    for pid in pids:
        with suppress(OSError):
            read_quickly(f"/proc/{pid}/syscall")
            return True
    return False
