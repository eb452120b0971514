"""Instructions in user space, counted by hardware (perf_event_open(2)).

The kernel allows it without root: each thread gets a counter, which later threads and child
processes inherit. The kernel switches counters whenever such a thread gets or leaves a CPU, which
takes CPU time, more in a virtual machine: that is why they are counted on request.
"""

import ctypes
import errno
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from struct import pack, unpack
from typing import NamedTuple, Self

from webdyno.core.errors import UserError
from webdyno.host.machine import first_number

SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
"""Number of perf_event_open by machine (arch/*/kernel/syscalls/syscall.tbl of Linux)."""
ATTRIBUTES = "IIQQQQQ"
ATTRIBUTES_BYTES = 64
"""The first version of perf_event_attr, which every kernel takes."""
WITH_TIMES = 1 | 2
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: events take turns where counters are few."""
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
"""Bits of perf_event_attr after read_format."""
ANY_CPU, NO_EVENT_GROUP = -1, -1
CLOSED_BY_EXEC = 1 << 3
"""PERF_FLAG_FD_CLOEXEC."""
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
PARANOID_ALLOWS = 2
"""With more, some distributions' kernels let only root count."""
NO_COUNTERS = "this machine has no counters"
NO_RIGHTS = "the system doesn't allow it, such as a container's profile, or its servers' user"
NO_PROCESSES = "none of its servers' processes is here"
NEVER_AT_REST = "its servers keep starting threads"
ATTEMPTS = 5
"""Looks at a variant's threads, until none was started in the course of one."""
AT_WORK = 0.999
"""Share of the time in which a counter has to have counted. Less is refused: what was executed in
the rest isn't known, as the kernel's watchdog or another program had the counter."""
_libc = ctypes.CDLL(None, use_errno=True)


class Event(NamedTuple):
    """What is counted, by its type and configuration in perf_event_attr."""

    type: int
    config: int


INSTRUCTIONS = Event(0, 1)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS."""


class Counted(NamedTuple):
    """How many instructions there were, or why nobody knows."""

    instructions: int | None
    fault: str = ""
    """Empty where they were counted."""


class InstructionCounter:
    """Counts those of processes, and of all that they start, while it is entered: see `counted`."""

    def __init__(self, pids: Callable[[], Sequence[int]], event: Event = INSTRUCTIONS) -> None:
        """`pids` gives the processes that live now."""
        self._pids, self._event = pids, event
        self.counted = Counted(None, NO_PROCESSES)

    def __enter__(self) -> Self:
        self._exits, self._counters = ExitStack(), list[int]()
        try:
            self._open_all()
        except OSError as error:
            self._exits.close()
            self._counters = []
            self.counted = Counted(None, _fault(error))
        return self

    def __exit__(self, *_: object) -> None:
        with self._exits:
            if self._counters:
                self.counted = _total([os.read(counter, 24) for counter in self._counters])

    def _open_all(self) -> None:
        """Count each thread once: those started meanwhile may have inherited a counter, or not."""
        for _ in range(ATTEMPTS):
            threads = _threads(self._pids())
            self._counters = [*self._open(threads)]
            if _threads(self._pids()) <= threads:
                return
            self._exits.close()
        self._counters = []
        self.counted = Counted(None, NEVER_AT_REST)

    def _open(self, threads: Iterable[int]) -> Iterator[int]:
        for thread in threads:
            with suppress(ProcessLookupError):
                counter = open_counter(self._event, thread)
                self._exits.callback(os.close, counter)
                yield counter


def check_counted(place: str = "") -> None:
    """Raise UserError, which names a place such as a flag, if instructions can't be counted."""
    if why := why_uncounted():
        where = f"{place}: " if place else ""
        raise UserError(
            f"{where}instructions can't be counted here: {why}. Decide on server_cpu_us (cpu in "
            "limits) in their place"
        )


def why_uncounted() -> str:
    """Return why instructions can't be counted on this machine; empty where they can."""
    with InstructionCounter(lambda: [os.getpid()]) as counter:
        pass
    counted = counter.counted
    return counted.fault or ("" if counted.instructions else NO_COUNTERS)


def open_counter(event: Event, thread: int) -> int:
    """Begin to count what a thread does in user space; return the descriptor, or raise OSError."""
    number = SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR
    parts = (event.type, ATTRIBUTES_BYTES, event.config, 0, 0, WITH_TIMES, flags)
    asked = ctypes.create_string_buffer(pack(ATTRIBUTES, *parts), ATTRIBUTES_BYTES)
    numbers = map(ctypes.c_long, (thread, ANY_CPU, NO_EVENT_GROUP, CLOSED_BY_EXEC))
    counter: int = _libc.syscall(ctypes.c_long(number), asked, *numbers)
    if counter < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return counter


def _threads(pids: Iterable[int]) -> set[int]:
    threads: set[int] = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            threads |= {int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()}
    return threads


def _total(read: Iterable[bytes]) -> Counted:
    total = 0
    for value, enabled_ns, running_ns in (unpack("QQQ", each) for each in read):
        if running_ns < AT_WORK * enabled_ns:
            free = f"{running_ns / enabled_ns:.0%} of the time"
            return Counted(None, f"others use the counters, which were free {free}")
        total += value
    return Counted(total)


def _fault(error: OSError) -> str:
    if error.errno in {errno.EACCES, errno.EPERM}:
        level = first_number(PARANOID, 0)
        if os.geteuid() != 0 and level > PARANOID_ALLOWS:
            return (
                f"kernel.perf_event_paranoid is {level}, which leaves them to root; "
                f"sudo sysctl kernel.perf_event_paranoid={PARANOID_ALLOWS} allows them"
            )
        return NO_RIGHTS
    if error.errno in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.ENOSYS}:
        return NO_COUNTERS
    return f"the kernel doesn't count them ({error.strerror})"
