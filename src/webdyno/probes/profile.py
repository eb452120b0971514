"""What servers' CPUs do, by `perf`: stacks of calls, and system calls.

Stacks of calls are sampled by `perf`, kept on other CPUs, by the CPU clock. No hardware counter is
needed, so it works in virtual machines. Idle CPUs are not counted.

System calls are counted on the kernel's tracepoints. Each costs a little more while it is counted,
and calls of other programs on these CPUs count as well. Where tracepoints can't be had, as without
root or a kernel that has none, nothing is counted.
"""

import logging
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import Self

from webdyno.core.errors import OperationError
from webdyno.host.children import ending_with_us, run_program
from webdyno.host.users import make_private
from webdyno.host.workspace import Workspace
from webdyno.probes.stacks import OF_CALL, SAMPLED_HZ, Profile, profile_of

logger = logging.getLogger(__name__)

PERF = "perf"
NOBODY = 65534
"""As whom root reads a profile without processes."""
MOST_MEMORY_BYTES = 4 * 2**30
"""For reading a profile: it takes in what programs say that their functions are called."""
RECORDS_AT, RECORDS = 40, Struct("=QQ")
"""Where a recording says where its records are, by Linux's perf.data-file-format.txt."""
RECORD, KIND = Struct("=IxxHI"), Struct("=I")
"""How a record begins that is of a process: its kind, its length and the process."""
MAPPED, SAYS_NOTHING = {1, 10}, 6
"""PERF_RECORD_MMAP and MMAP2, of the process whose memory a file is in; UNTHROTTLE."""
OF_KERNEL = 2**32 - 1
NOT_THERE = f"profiles take `{PERF}` (Debian: apt-get install linux-perf)"
RESPONSES_WITHIN_S = 30.0
READ_WITHIN_S, LOOK_S = 60.0, 0.05
ALL_CALLS = "raw_syscalls:sys_enter"
OTHER_CALLS = "others"
ENTERED_CALL = re.compile(r"\bsyscalls:sys_enter_(\w+)")


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
            place = make_private(exits.enter_context(Workspace()).path / PERF)
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
        if shutil.which(PERF) is None:
            raise OperationError(NOT_THERE)
        try:
            return subprocess.Popen(
                [
                    *ending_with_us("KILL"),
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
                self._forget_others()
                # Names of what servers compile are in files of theirs: `--force` has them believed.
                # What was inlined has no program of its own, and takes long to be found.
                how = ("--force", "--no-inline", "--fields=comm,pid,ip,sym,dso")
                rights = [*self._with_output(), *self._without_rights()]
                printed = read_by_perf("script", "--input=/proc/self/fd/0", *how, rights=rights)
                lines = iter(printed.splitlines())
                self.profile = profile_of(lines, self._folders, self.pids)

    def _forget_others(self) -> None:
        """Take out of the output what others than the servers have in memory.

        Then none of what they call their files is opened to find names of functions in it.
        """
        known = {*self.pids, OF_KERNEL}
        with self.output.open("r+b") as file, mmap(file.fileno(), 0) as output:
            begin, length = RECORDS.unpack_from(output, RECORDS_AT)
            end = begin + length
            while begin < end:
                kind, length, pid = RECORD.unpack_from(output, begin)
                if kind in MAPPED and pid not in known:
                    output[begin : begin + KIND.size] = KIND.pack(SAYS_NOTHING)
                begin += max(length, RECORD.size)

    def _with_output(self) -> list[str]:
        """Return words before a command by which it has little memory, and its input is the output.

        Nobody else gets into the output's folder: it says where all processes have what in memory.
        """
        self.output.chmod(0o444)
        memory = ("prlimit", f"--as={MOST_MEMORY_BYTES}")
        return [*memory, "sh", "-c", 'exec "$@" <"$0"', str(self.output)]

    def _without_rights(self) -> list[str]:
        """Return words before a command by which root reads as servers do, but the kernel's names.

        perf reads what a program says that its functions are called, by any file that it links to;
        one that runs as root may read that itself. As long as perf may see the kernel's names, its
        own memory and descriptors are closed to programs of the same user.
        """
        owners = {uid for uid in map(_uid_of, self.pids) if uid is not None}
        if os.geteuid() != 0 or owners == {0}:
            return []
        uid = max(owners, default=NOBODY)
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
