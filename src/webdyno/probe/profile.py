"""What the servers' CPUs do: stacks of calls, sampled by `perf` by the CPU clock.

No hardware counter is needed, so it works in virtual machines. Each sample is a stretch of CPU time
that is put down to what its stack of calls shows: the system call that the kernel works on, the
network's receiving side, page faults; or, outside of the kernel, the library or program whose own
code it is. Idle CPUs are not counted.
"""

import os
import re
import select
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from webdyno.model.mistake import Trouble

PERF = "perf"
SAMPLED_HZ = 997
"""A prime number, so as not to keep step with what a server does at a beat."""
ANSWERS_WITHIN_S = 30.0
READ_WITHIN_S, LOOK_S = 60.0, 0.05
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

    def __init__(self, cpus: Sequence[int], beside: Collection[int]) -> None:
        """Sample those CPUs, working on others; raise Trouble on entering where one may not."""
        self._cpus = ",".join(map(str, cpus))
        self._beside = beside
        self.profile = Profile({}, Counter())

    def __enter__(self) -> Self:
        """Begin; give back when the kernel samples."""
        with ExitStack() as exits:
            folder = tempfile.TemporaryDirectory(prefix="webdyno-profile-")
            place = Path(exits.enter_context(folder))
            self._data = place / "perf.data"
            pipes = [place / name for name in ("control", "ack")]
            self._control, self._ack = (_pipe(it, exits) for it in pipes)
            self._process = exits.enter_context(self._perf(*pipes))
            exits.callback(self._process.kill)
            os.sched_setaffinity(self._process.pid, self._beside)
            self._say("enable")
            self._exits = exits.pop_all()
        return self

    def _perf(self, control: Path, ack: Path) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [
                    *(PERF, "record", "--quiet", "--event=cpu-clock", f"--freq={SAMPLED_HZ}"),
                    *("-g", f"--cpu={self._cpus}", "--delay=-1", f"--output={self._data}"),
                    f"--control=fifo:{control},{ack}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise Trouble(f"profiles take `{PERF}` (Debian: apt-get install linux-perf)") from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and read what was sampled."""
        with self._exits:
            if kind is None:
                self._say("stop")
                self._process.wait(ANSWERS_WITHIN_S)
                self.profile = profile_of(self._read())

    def _say(self, word: str) -> None:
        """Tell perf something and wait until it has done it."""
        os.write(self._control, f"{word}\n".encode())
        deadline = time.monotonic() + ANSWERS_WITHIN_S
        while not select.select([self._ack], [], [], LOOK_S)[0]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Trouble(f"{PERF} can't sample here: {self._complaint()}")
        os.read(self._ack, 64)

    def _complaint(self) -> str:
        said = b""
        if self._process.poll() is not None and self._process.stderr is not None:
            said = self._process.stderr.read().strip()
        why = said.decode(errors="replace")[-300:] or "it gave no answer"
        return f"{why}; root may, others where kernel.perf_event_paranoid is -1"

    def _read(self) -> Iterator[str]:
        done = subprocess.run(
            [PERF, "script", f"--input={self._data}", "--fields=comm,pid,ip,sym,dso"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=READ_WITHIN_S,
            check=False,
        )
        if done.returncode:
            raise Trouble(f"{PERF} script: {done.stderr.strip()[-300:]}")
        yield from done.stdout.splitlines()


def _pipe(path: Path, exits: ExitStack) -> int:
    """Make a named pipe, open at both ends: else each side would wait for the other."""
    os.mkfifo(path)
    opened = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    exits.callback(os.close, opened)
    return opened


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
    return Frame(symbol.partition("+")[0] or "?", program.rstrip(")"))


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
    program = Path(frames[0].program).name
    return f"{re.split(r'[-.]so|-[0-9]', program)[0] or 'unknown'}'s own code"
