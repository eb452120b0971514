"""What the servers' CPUs do: stacks of calls, sampled by `perf` by the CPU clock.

No hardware counter is needed, so it works in virtual machines. Each sample is a stretch of CPU time
that is put down to what its stack of calls shows: the system call that the kernel works on, the
network's receiving side, page faults; or, outside of the kernel, the library or program whose own
code it is. Idle CPUs are not counted.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from webdyno.model.mistake import Trouble
from webdyno.probe.perf import Perf, read_by_perf

SAMPLED_HZ = 997
"""A prime number, so as not to keep step with what a server does at a beat."""
IDLE = re.compile(r"^(swapper|perf|perf-exec)$")
SYSTEM_CALL = re.compile(r"^_*(?:x64|se|ia32|do|arm64)?_*sys_(\w+)$")
CALLS = {
    "accepting": {"accept", "accept4", "socket", "shutdown", "close", "connect", "getsockname"},
    "receiving": {"read", "readv", "recvfrom", "recvmsg", "recvmmsg", "pread64"},
    "sending": {
        "write",
        "writev",
        "sendto",
        "sendmsg",
        "sendfile64",
        "sendfile",
        "sendmmsg",
        "setsockopt",
    },
    "files": {
        *("open", "openat", "newfstatat", "newfstat", "stat", "lstat", "statx", "fstat", "access"),
        *("getdents64", "lseek", "readlink", "faccessat", "getcwd", "fcntl", "unlink"),
    },
    "waiting for events": {
        *("epoll_wait", "epoll_ctl", "epoll_pwait", "poll", "ppoll", "select", "pselect6"),
        *("nanosleep", "clock_nanosleep", "futex", "sched_yield", "restart_syscall"),
    },
    "memory": {"mmap", "munmap", "brk", "madvise", "mprotect", "mremap"},
}
OF_CALL = {call: what for what, calls in CALLS.items() for call in calls}
NETWORK = ("net_rx_action", "__napi_poll", "process_backlog")
FAULT = ("asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault")
COMPILED = re.compile(r"^(?:/tmp/perf-\d+\.map|//anon|\[JIT\].*|\[anon.*)$")
"""Where `perf` finds what a program compiles while it runs; by process, unlike its own code."""
KERNEL = {"[kernel.kallsyms]", "[kernel]", "[guest.kernel.kallsyms]", "[vdso]"}


class Frame(NamedTuple):
    """One call of a stack."""

    symbol: str
    program: str
    """The file whose code it is; one of `KERNEL` for the kernel's."""


class Profile(NamedTuple):
    """What was sampled in a stretch of time."""

    cpu_s: dict[str, float]
    """By what was done."""
    stacks: Counter[str]
    """Folded: `program;call;call`, the outermost first, with the number of samples."""


class Profiler:
    """Samples some CPUs while it is entered; `profile` is there afterwards."""

    def __init__(self, cpus: Collection[int], beside: Collection[int]) -> None:
        """Sample those CPUs, working on others; raise Trouble on entering where one may not."""
        options = ("record", "--quiet", "--event=cpu-clock", f"--freq={SAMPLED_HZ}", "-g")
        self._perf = Perf(options, cpus, beside)
        self.profile = Profile({}, Counter())

    def __enter__(self) -> Self:
        """Begin; give back when the kernel samples."""
        self._perf.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and read what was sampled."""
        with ExitStack() as exits:
            exits.push(self._perf)
            if kind is None:
                self._perf.say("stop")
                self._perf.finish()
                self.profile = profile_of(iter(self._read().splitlines()))

    def _read(self) -> str:
        # Names of what servers compile are in files of theirs: `--force` has them believed.
        place = f"--input={self._perf.output}"
        return read_by_perf("script", "--force", place, "--fields=comm,pid,ip,sym,dso")


def sampling_fault() -> str | None:
    """Tell why CPUs can't be sampled here, and what would allow it; None where they can."""
    cpus = os.sched_getaffinity(0)
    try:
        with Profiler(sorted(cpus), cpus):
            pass
    except Trouble as trouble:
        return str(trouble)
    return None


def profile_of(lines: Iterator[str]) -> Profile:
    """Put samples, as `perf script` prints them, down to what was done."""
    cpu_s, stacks = Counter[str](), Counter[str]()
    for comm, frames in _samples(lines):
        if IDLE.match(comm):
            continue
        cpu_s[what_is_done(frames)] += 1
        calls = ";".join(frame.symbol for frame in reversed(frames))
        stacks[f"{comm};{calls}"] += 1
    return Profile({what: count / SAMPLED_HZ for what, count in cpu_s.items()}, stacks)


def _samples(lines: Iterator[str]) -> Iterator[tuple[str, list[Frame]]]:
    comm, frames = "", list[Frame]()
    for line in lines:
        if not line.strip():
            if comm:
                yield comm, frames
            comm, frames = "", []
        elif not comm:
            comm = line.rsplit(None, 1)[0].strip()
        else:
            frames.append(_frame(line))
    if comm:
        yield comm, frames


def _frame(line: str) -> Frame:
    """Read `ffffffff8109 symbol (program)`."""
    rest = line.strip().partition(" ")[2]
    symbol, _, program = rest.rpartition(" (")
    return Frame(symbol.partition("+")[0].replace(";", ",") or "?", program.rstrip(")"))


def what_is_done(frames: Sequence[Frame]) -> str:
    """Say what a stack of calls, the innermost first, is about."""
    in_kernel = [frame for frame in frames if frame.program in KERNEL]
    if not in_kernel:
        return _own_code(frames)
    names = [frame.symbol for frame in in_kernel]
    if any(name in names for name in NETWORK):
        return "the network's receiving side"
    for name in names:
        if (call := SYSTEM_CALL.match(name)) and (what := OF_CALL.get(call.group(1))):
            return what
    if any(name in names for name in FAULT):
        return "page faults"
    return "the kernel's other work"


def _own_code(frames: Sequence[Frame]) -> str:
    if not frames:
        return "unknown"
    if COMPILED.match(frames[0].program):
        return "code compiled while it ran"
    program = Path(frames[0].program).name
    return f"{re.split(r'[-.]so|-[0-9]', program)[0] or 'unknown'}'s own code"
