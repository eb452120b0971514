"""Instructions that servers execute, by the CPUs' own counters, through perf_event_open(2).

Those of a control group are counted, its subgroups and the kernel's work for it included. The
kernel switches such counters whenever a thread of the group gets or leaves a CPU, which takes the
longer in a virtual machine: what was counted is no measurement of CPU time.
"""

import ctypes
import errno
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from struct import pack, unpack
from typing import NamedTuple, Self

from webdyno.host.control_group import ControlGroup

SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
"""Number of perf_event_open by machine (arch/*/kernel/syscalls/syscall.tbl of Linux)."""
ATTRIBUTES = "IIQQQQQ"
ATTRIBUTES_BYTES = 64
"""The first version of perf_event_attr, which every kernel takes."""
WITH_TIMES = 1 | 2
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: events take turns where counters are few."""
OF_GROUP, CLOSED_BY_EXEC = 1 << 2, 1 << 3
"""PERF_FLAG_PID_CGROUP, PERF_FLAG_FD_CLOEXEC."""
NO_COUNTERS = "this machine has no counters"
NO_RIGHTS = "they are counted as root only"
NO_GROUP = "they are counted in control groups (version 2) only"
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
    """Counts those of a control group on some CPUs while it is entered; `counted` has them then."""

    def __init__(
        self, group: ControlGroup | None, cpus: Sequence[int], event: Event = INSTRUCTIONS
    ) -> None:
        """Count on those CPUs that the group may use; nothing is counted without a group."""
        self._group, self._cpus, self._event = group, cpus, event
        self.counted = Counted(None, NO_GROUP)

    def __enter__(self) -> Self:
        self._exits, self._counters = ExitStack(), list[int]()
        if self._group is None:
            return self
        try:
            self._counters = [*self._opened(self._group.path)]
        except OSError as error:
            self._exits.close()
            self.counted = Counted(None, _fault(error))
        return self

    def __exit__(self, *_: object) -> None:
        with self._exits:
            if self._counters:
                self.counted = _total([os.read(counter, 24) for counter in self._counters])

    def _opened(self, group: Path) -> Iterator[int]:
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for cpu in self._cpus:
                counter = open_counter(self._event, folder, cpu, OF_GROUP)
                self._exits.callback(os.close, counter)
                yield counter
        finally:
            os.close(folder)


def open_counter(event: Event, whose: int, cpu: int, flags: int = 0) -> int:
    """Begin to count, of a process or an open group; give the descriptor that tells how many.

    Raises OSError.
    """
    number = SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    attributes = pack(ATTRIBUTES, event.type, ATTRIBUTES_BYTES, event.config, 0, 0, WITH_TIMES, 0)
    asked = ctypes.create_string_buffer(attributes, ATTRIBUTES_BYTES)
    numbers = map(ctypes.c_long, (whose, cpu, -1, flags | CLOSED_BY_EXEC))
    counter: int = _libc.syscall(ctypes.c_long(number), asked, *numbers)
    if counter < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return counter


def _total(read: Iterable[bytes]) -> Counted:
    """Add up CPUs; what was counted for a part of the time stands for all of it."""
    total = 0
    for value, enabled_ns, running_ns in (unpack("QQQ", each) for each in read):
        if enabled_ns and not running_ns:
            return Counted(None, "other programs use this machine's counters")
        total += round(value * enabled_ns / running_ns) if running_ns else 0
    return Counted(total)


def _fault(error: OSError) -> str:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return NO_RIGHTS
    if error.errno in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.ENOSYS}:
        return NO_COUNTERS
    return f"the kernel doesn't count them ({error.strerror})"
