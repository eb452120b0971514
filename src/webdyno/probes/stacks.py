"""Whose work a sample of a CPU is: what was done, and which function of the program had it done.

A sample, which is a stack of calls, is put down twice: to what was done (the system call that the
kernel works on, the network's receiving side, page faults, or the library or program whose own code
it is), and to a function. That is the innermost one of the program's own files, with all that
libraries, runtime and kernel do for it: a commit changes those. Else it is the library's.

Names are the symbols that `perf` finds; of what is compiled while it runs those in
/tmp/perf-PID.map, where Node and Python write which file a function is of.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

MOST_LETTERS = 120
"""Of a name: those of templates in C++ have no end."""
NAMELESS = "[unknown]"
"""What `perf` calls a function without a symbol."""
COMPILED = re.compile(r"^(?:/tmp/perf-\d+\.map|//anon|\[JIT\].*|\[anon.*)$")
"""Where `perf` finds what a program compiles while it runs; by process, unlike its own code."""
PYTHON = re.compile(r"^py::(?P<name>[^:]*):(?P<file>.+)$")
JAVASCRIPT = re.compile(
    r"^(?:JS|LazyCompile|Function|Script|Eval):[*~^+]?"  # the sign says how it was compiled
    r"(?P<name>.*?) ?(?P<file>(?:file:/)?/.*?|node:\S+?)?(?::\d{1,9}){0,2}$"
)
BUILT = re.compile(r"^/.*/webdyno/revisions/\w+/files/")
"""Where revisions are built, each in a folder of its own: a function has one name in all."""
PACKAGES = re.compile(r"(?:^|/)(?:node_modules|site-packages|dist-packages|python3\.\d+)(?=/)")
CLONE = re.compile(r"(?:\.(?:constprop|isra|part|cold|lto_priv|llvm)(?:\.\d+)*)+$")
"""What compilers add to the name of a function of which they make another one."""
LIBRARIES = re.compile(
    r"^(?:"
    # The standard library of Go by its topmost folders, https://pkg.go.dev/std.
    r"(?:archive|bufio|bytes|cmp|compress|container|context|crypto|database|embed|encoding|errors|"
    r"expvar|flag|fmt|gcWriteBarrier|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|"
    r"net|os|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|sync|syscall|testing|"
    r"text|time|type|unicode|unique|unsafe|vendor|weak)[./:]"
    r"|<?(?:&?(?:mut )?)?(?:std|core|alloc|__gnu_cxx)::"
    r")"
)
SAMPLED_HZ = 997
"""A prime number, so as not to keep step with what a server does at a beat."""
MOST_FUNCTIONS = 300
"""In a slot: the others have one sample each, or two."""
OTHER_FUNCTIONS = "other functions"
OFFSET = re.compile(r"\+0x[0-9a-f]+$")
IDLE = re.compile(r"^(swapper|perf|perf-exec)$")
SYSTEM_CALL = re.compile(r"^_*(?:x64|se|ia32|do|arm64)?_*sys_(\w+)$")
CALLS = {
    "accepting": {"accept", "accept4", "socket", "shutdown", "close", "connect", "getsockname"},
    "receiving": {"read", "readv", "recvfrom", "recvmsg", "recvmmsg", "pread64"},
    "sending": {
        *("write", "writev", "sendto", "sendmsg", "sendfile64", "sendfile", "sendmmsg"),
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
OTHERS_CODE = "code of other programs"
RECEIVING_SIDE = "the network's receiving side"
NETWORK = {"net_rx_action", "__napi_poll", "process_backlog"}
FAULT = {"asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault"}
KERNEL = {"[kernel.kallsyms]", "[kernel]", "[guest.kernel.kallsyms]", "[vdso]"}


class Function(NamedTuple):
    """A function as people know it."""

    name: str
    """With the file that has it: `search (app.py)`, `main.search (server)`."""
    is_own: bool
    """Whether it is the program's own, and not a library's."""


@lru_cache(maxsize=16_384)
def function_in(symbol: str, program: str, folders: tuple[str, ...]) -> Function | None:
    """Return the function of a symbol that `perf` found in the file `program`; None of one without.

    `folders` are those that the servers' own programs run in.
    """
    if symbol in {NAMELESS, "?"}:
        return None
    if COMPILED.match(program):
        match = PYTHON.match(symbol) or JAVASCRIPT.match(symbol)
        return (
            _compiled_function(match, folders)
            if match
            else Function(_label(symbol, ""), is_own=False)
        )
    if program.startswith("["):  # the kernel's
        return None
    inside = _inside(program, folders)
    is_own = inside is not None and not PACKAGES.search(inside) and not LIBRARIES.match(symbol)
    return Function(_label(CLONE.sub("", symbol), PurePosixPath(program).name), is_own)


def _compiled_function(match: re.Match[str], folders: tuple[str, ...]) -> Function:
    path = (match["file"] or "").removeprefix("file://")
    inside = _inside(path, folders)
    is_own = inside is not None and not PACKAGES.search(inside)
    shown = inside if inside is not None and is_own else PACKAGES.split(path)[-1]
    return Function(_label(match["name"] or "(anonymous)", shown.removeprefix("/")), is_own)


def _inside(path: str, folders: tuple[str, ...]) -> str | None:
    """A path below one of some folders, or below a revision's files; None where it isn't."""
    if built := BUILT.match(path):
        return path[built.end() :]
    if path and not path.startswith(("/", "<", "node:")):
        return path.removeprefix("./")
    below = (path.removeprefix(f"{folder}/") for folder in folders)
    return next((name for name in below if name != path), None)


def _label(name: str, file: str) -> str:
    whole = f"{name} ({file})" if file else name
    return whole if len(whole) <= MOST_LETTERS else f"{whole[: MOST_LETTERS - 1]}…"


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
    functions_s: dict[str, float]
    """CPU time by function, with all that was done for it; those with least time together."""


def profile_of(
    lines: Iterator[str], folders: Sequence[str] = (), pids: Collection[int] = ()
) -> Profile:
    """Put samples, as `perf script` prints them, down to what was done, and for which function.

    `folders` are those that the servers' own programs run in, `pids` their processes where these
    are known: functions and libraries are theirs alone.
    """
    done, stacks, functions = Counter[str](), Counter[str](), Counter[str]()
    inside = tuple(folders)
    for comm, pid, frames in _samples(lines):
        if IDLE.match(comm):
            continue
        is_servers = not pids or pid in pids
        is_own_code = bool(frames) and frames[0].program not in KERNEL
        what = what_is_done(frames) if is_servers or not is_own_code else OTHERS_CODE
        done[what] += 1
        # Packages for the servers arrive while anybody has the CPU.
        if is_servers or what == RECEIVING_SIDE:
            functions[function_of(frames, inside)] += 1
        calls = ";".join(_shown(frame, inside) for frame in reversed(frames))
        stacks[f"{comm};{calls}"] += 1
    most = Counter(dict(functions.most_common(MOST_FUNCTIONS)))
    if left := functions.total() - most.total():
        most[OTHER_FUNCTIONS] += left
    return Profile(_seconds(done), stacks, _seconds(most))


def _seconds(samples: Counter[str]) -> dict[str, float]:
    return {what: count / SAMPLED_HZ for what, count in samples.items()}


def _shown(frame: Frame, folders: tuple[str, ...]) -> str:
    """The same name for all builds of a program, of what was compiled while it ran."""
    match = function_in(*frame, folders) if COMPILED.match(frame.program) else None
    return (match.name if match else frame.symbol).replace(";", ",")


def _samples(lines: Iterator[str]) -> Iterator[tuple[str, int, list[Frame]]]:
    """Yield the program, process and calls of each."""
    comm, pid, frames = "", 0, list[Frame]()
    for line in lines:
        if not line.strip():
            if comm:
                yield comm, pid, frames
            comm, frames = "", []
        elif not comm:
            comm, _, said = line.strip().rpartition(" ")
            comm, pid = comm.strip(), int(said) if said.isdecimal() else 0
        else:
            # ffffffff8109 symbol (program)
            symbol, _, program = line.strip().partition(" ")[2].rpartition(" (")
            frames.append(Frame(OFFSET.sub("", symbol) or "?", program.rstrip(")")))
    if comm:
        yield comm, pid, frames


def function_of(frames: Sequence[Frame], folders: tuple[str, ...]) -> str:
    """Return the function for which a stack of calls, the innermost first, does something."""
    named = [function for frame in frames if (function := function_in(*frame, folders))]
    if own := next((function for function in named if function.is_own), None):
        return own.name
    done = what_is_done(frames)
    if frames and frames[0].program in KERNEL:
        return f"kernel: {done}"
    return named[0].name if named else done


def what_is_done(frames: Sequence[Frame]) -> str:
    """Return what a stack of calls, the innermost first, is about."""
    in_kernel = [frame for frame in frames if frame.program in KERNEL]
    if not in_kernel:
        return _own_code(frames)
    names = [frame.symbol for frame in in_kernel]
    if not NETWORK.isdisjoint(names):
        return RECEIVING_SIDE
    for name in names:
        if (call := SYSTEM_CALL.match(name)) and (what := OF_CALL.get(call.group(1))):
            return what
    return "the kernel's other work" if FAULT.isdisjoint(names) else "page faults"


def _own_code(frames: Sequence[Frame]) -> str:
    if not frames:
        return "unknown"
    if COMPILED.match(frames[0].program):
        return "code compiled while it ran"
    program = Path(frames[0].program).name
    return f"{re.split(r'[-.]so|-[0-9]', program)[0] or 'unknown'}'s own code"
