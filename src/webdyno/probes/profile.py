"""What servers' CPUs do, by the kernel's performance events: stacks, system calls, instructions.

Stacks of calls are sampled by `perf`, kept on other CPUs, by the CPU clock. No hardware counter is
needed, so it works in virtual machines. Idle CPUs are not counted.

System calls are counted on the kernel's tracepoints. Each costs a little more while it is counted,
and calls of other programs on these CPUs count as well. Where tracepoints can't be had, as without
root or a kernel that has none, nothing is counted.

Instructions in user space are counted by hardware (perf_event_open(2), which the kernel allows
without root): each thread gets a counter, which later threads and child processes inherit. The
kernel switches counters whenever such a thread gets or leaves a CPU, which takes CPU time, more in
a virtual machine: that is why they are counted on request.
"""

import ctypes
import errno
import logging
import os
import platform
import re
import select
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from struct import pack, unpack
from typing import NamedTuple, Self

from webdyno.core.errors import OperationError, UserError
from webdyno.host.children import run_program
from webdyno.probes.stacks import OF_CALL, SAMPLED_HZ, Profile, profile_of

logger = logging.getLogger(__name__)

PERF = "perf"
NOBODY = 65534
"""As whom root reads a profile without processes."""
NOT_THERE = f"profiles take `{PERF}` (Debian: apt-get install linux-perf)"
RESPONSES_WITHIN_S = 30.0
READ_WITHIN_S, LOOK_S = 60.0, 0.05
ALL_CALLS = "raw_syscalls:sys_enter"
OTHER_CALLS = "others"
ENTERED_CALL = re.compile(r"\bsyscalls:sys_enter_(\w+)")
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


class Perf:
    """A subcommand of `perf` at work while it is entered, from when the kernel has begun."""

    def __init__(
        self, options: Sequence[str], cpus: Collection[int], other_pids: Collection[int]
    ) -> None:
        """Look at some CPUs, working on others; entering raises OperationError if refused."""
        self._options, self._other_pids = options, other_pids
        self._cpus = ",".join(map(str, sorted(cpus)))

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            folder = tempfile.TemporaryDirectory(prefix="webdyno-perf-")
            place = Path(exits.enter_context(folder))
            self.output = place / "output"
            pipes = [place / name for name in ("control", "ack")]
            self._control, self._ack = (_pipe(pipe, exits) for pipe in pipes)
            self._process = exits.enter_context(self._start(*pipes))
            exits.callback(self._process.kill)
            os.sched_setaffinity(self._process.pid, self._other_pids)
            self.say("enable")
            self._exits = exits.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._exits.close()

    def _start(self, control: Path, ack: Path) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [
                    *(PERF, *self._options, f"--cpu={self._cpus}", "--delay=-1"),
                    *(f"--output={self.output}", f"--control=fifo:{control},{ack}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise OperationError(NOT_THERE) from None

    def say(self, word: str) -> None:
        """Report it something and wait until it has done it."""
        logger.debug("perf, process %d, is to %s", self._process.pid, word)
        os.write(self._control, f"{word}\n".encode())
        deadline = time.monotonic() + RESPONSES_WITHIN_S
        while not select.select([self._ack], [], [], LOOK_S)[0]:
            has_ended = self._process.poll() is not None
            if has_ended or time.monotonic() > deadline:
                errors = self._process.stderr if has_ended else None
                said = errors.read().strip().decode(errors="replace")[-300:] if errors else ""
                raise OperationError(
                    f"{PERF} can't look here: {said or 'it gave no response'}; root may, others "
                    "where kernel.perf_event_paranoid is -1"
                )
        os.read(self._ack, 64)

    def finish(self, signal: int | None = None) -> None:
        """Wait until its output is written, after a signal if it takes one to end it."""
        if signal is not None:
            self._process.send_signal(signal)
        try:
            self._process.wait(RESPONSES_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise OperationError(f"{PERF} didn't end within {RESPONSES_WITHIN_S:g} s") from None


def _pipe(path: Path, exits: ExitStack) -> int:
    """Make a named pipe, open at both ends: else each side would wait for the other."""
    os.mkfifo(path)
    opened = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    exits.callback(os.close, opened)
    return opened


def read_by_perf(*arguments: str, rights: Sequence[str] = ()) -> str:
    """Return what a subcommand of `perf` prints; raise OperationError when it fails.

    `rights` are words before it by which it has others.
    """
    done = run_program([*rights, PERF, *arguments], within_s=READ_WITHIN_S, install=NOT_THERE)
    if done.returncode:
        raise OperationError(f"{PERF} {arguments[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout


class Profiler(Perf):
    """Samples some CPUs while it is entered; `profile` is there afterwards."""

    def __init__(
        self, cpus: Collection[int], other_pids: Collection[int], folders: Sequence[str] = ()
    ) -> None:
        """Sample those CPUs, working on others; servers' own programs run in `folders`."""
        # With build IDs it would open whatever programs name.
        unread = ("--no-buildid", "--no-buildid-cache")
        options = ("record", "--quiet", "--event=cpu-clock", f"--freq={SAMPLED_HZ}", "-g", *unread)
        super().__init__(options, cpus, other_pids)
        self._folders = folders
        self.pids = set[int]()
        """The servers' processes, as far as they are known."""
        self.profile = Profile({}, Counter(), {})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._exits:
            if kind is None:
                self.say("stop")
                self.finish()
                # Names of what servers compile are in files of theirs: `--force` has them believed.
                # What was inlined has no program of its own, and takes long to be found.
                how = ("--force", "--no-inline", "--fields=comm,pid,ip,sym,dso")
                rights = self._without_rights()
                printed = read_by_perf("script", f"--input={self.output}", *how, rights=rights)
                lines = iter(printed.splitlines())
                self.profile = profile_of(lines, self._folders, self.pids)

    def _without_rights(self) -> list[str]:
        """Return words before a command by which root reads as servers do, but the kernel's names.

        perf reads what a program says that its functions are called, by any file that it links to;
        one that runs as root may read that itself.
        """
        owners = {uid for uid in map(_uid_of, self.pids) if uid is not None}
        if os.geteuid() != 0 or owners == {0}:
            return []
        uid = max(owners, default=NOBODY)
        self.output.parent.chmod(0o711)
        os.chown(self.output, uid, -1)
        kernel = [f"--{kind}-caps=-all,+syslog" for kind in ("inh", "ambient")]
        return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *kernel]


def _uid_of(pid: int) -> int | None:
    """Return the user of a process; None when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}").stat().st_uid
    return None


def sampling_fault() -> str | None:
    """Report why CPUs can't be sampled here, and what would allow it; None where they can."""
    cpus = os.sched_getaffinity(0)
    try:
        with Profiler(sorted(cpus), cpus):
            pass
    except OperationError as error:
        return str(error)
    return None


class SystemCalls:
    """Counts while it is entered; `counts` are there afterwards, by call, if any can be had."""

    def __init__(self, cpus: Collection[int], other_pids: Collection[int]) -> None:
        """Look at some CPUs, working on others."""
        self._cpus, self._other_pids = cpus, other_pids
        self._perf: Perf | None = None
        self.counts: dict[str, int] | None = None

    def __enter__(self) -> Self:
        self._exits = ExitStack()
        with suppress(OperationError):
            events = ",".join(
                [ALL_CALLS, *(f"syscalls:sys_enter_{call}" for call in known_calls())]
            )
            options = ("stat", "--field-separator=;", f"--event={events}", "--all-cpus")
            self._perf = self._exits.enter_context(Perf(options, self._cpus, self._other_pids))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._exits:
            if kind is None and self._perf is not None:
                self._perf.say("disable")
                self._perf.finish(signal.SIGINT)
                self.counts = counts_of(self._perf.output.read_text().splitlines())


@cache
def known_calls() -> list[str]:
    """Return the calls that have a meaning to profiles and a tracepoint of their own."""
    listed = read_by_perf("list", "syscalls:sys_enter_*")
    return sorted(OF_CALL.keys() & set(ENTERED_CALL.findall(listed)))


def counts_of(lines: Iterable[str]) -> dict[str, int]:
    """Read `count;;event;…` of each event; those not named by a call are others."""
    counted = Counter[str]()
    for line in lines:
        fields = line.split(";")
        if len(fields) > 2 and fields[0].isdigit():
            counted[fields[2]] += int(fields[0])
    named = {
        event.partition("sys_enter_")[2]: count
        for event, count in counted.items()
        if event != ALL_CALLS and count
    }
    rest = counted[ALL_CALLS] - sum(named.values())
    return named | ({OTHER_CALLS: rest} if rest > 0 else {})


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
        level = _paranoid()
        if os.geteuid() != 0 and level > PARANOID_ALLOWS:
            return (
                f"kernel.perf_event_paranoid is {level}, which leaves them to root; "
                f"sudo sysctl kernel.perf_event_paranoid={PARANOID_ALLOWS} allows them"
            )
        return NO_RIGHTS
    if error.errno in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.ENOSYS}:
        return NO_COUNTERS
    return f"the kernel doesn't count them ({error.strerror})"


def _paranoid() -> int:
    try:
        return int(PARANOID.read_text())
    except (OSError, ValueError):
        return 0
