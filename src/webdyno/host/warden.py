"""Runs one server and sees to it that nothing of it outlives webdyno.

Started by `webdyno.host` as `python -I -S warden.py` in a session of its own; needs nothing but
the standard library. Its standard input brings the order and is then a lifeline, whose other
end webdyno holds: when that closes, however webdyno ended, the server is asked to stop, then it and
all its descendants are killed. Orphans of the server become children of the warden (it is their
subreaper), so none gets away. Should the warden itself be killed, the server gets its stop signal
from the kernel.

The order is its length in eight digits, then JSON: program (its path), folder (where it runs),
argv, environment (of the server alone: a catalogue has no say in what we run with, as we may be
root), user, uid, gid, groups (null: stay who we are), cpus, groups_to_join (paths of
`cgroup.procs`), groups_to_remove (folders of those that the server makes itself), stop_signal,
stop_within_s, afterwards (a command that removes what a daemon has for the server, run once all has
ended; empty for none), workspace {path, lock, groups: those of its stack} (removed if webdyno is
gone).
Its standard error is the server's log, which it keeps from growing beyond MOST_LOG_BYTES a start.
Prints the server's process id on one line and, when that process has ended by itself, how many
others it left running on the next; exits with the server's exit code, 128 + N after signal N.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PASSES = 3
"""Number of attempts where something is still being written."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_WITHIN_S = 10.0
SIBLINGS_WITHIN_S = 0.2
LOCK_WITHIN_S = 2.0
SHARED_AT_ONCE = fcntl.LOCK_SH | fcntl.LOCK_NB
LOOKED_AT_S = 0.5
AFTERWARDS_WITHIN_S = 20.0
MOST_LOG_BYTES = 16 << 20
LOG_BEGIN_BYTES, LOG_END_BYTES = 4 << 20, 64 << 10
"""What stays of a log that became larger."""
OPEN_FILES = 65536
"""Enough for any load here; some servers walk through all descriptors up to the limit."""


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Remove a folder with all that is in it; nothing where it isn't there.

    Folders in it are first moved up to its top, so that no path becomes too long and nothing
    recurses. No symbolic link is followed. Raise OSError for what can't be removed.
    """
    try:
        top = _open_folder(os.fspath(path), None)
    except FileNotFoundError:
        return
    try:
        for _ in range(PASSES):
            _empty(top)
            if not os.listdir(top):  # noqa: PTH208 (by descriptor)
                break
    finally:
        os.close(top)
    with contextlib.suppress(FileNotFoundError):  # two runs may remove what a third one left
        os.rmdir(path)  # noqa: PTH106 (nothing needless is imported)


def _empty(top: int) -> None:
    folders = _without_files(top)
    while folders:
        name = folders.pop()
        try:
            folder = _open_folder(name, top)
        except FileNotFoundError:
            continue
        try:
            for inner in _without_files(folder):
                moved = os.urandom(16).hex()
                with contextlib.suppress(FileNotFoundError):
                    _move(inner, folder, moved, top)
                    folders.append(moved)
        finally:
            os.close(folder)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=top)


def _without_files(folder: int) -> list[str]:
    """Remove everything but folders from a folder, and return their names."""
    folders = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            folders.append(name)
        except FileNotFoundError:
            pass
    return folders


def _move(name: str, source: int, moved: str, target: int) -> None:
    try:
        os.rename(name, moved, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:  # of the folder itself, whose `..` changes
        os.close(_open_folder(name, source))
        os.rename(name, moved, src_dir_fd=source, dst_dir_fd=target)


def _open_folder(name: str, parent: int | None) -> int:
    """Open a folder that we may read and change, made so where it is ours and wasn't."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        with contextlib.suppress(PermissionError):
            os.chmod(f"/proc/self/fd/{place}", 0o700)  # noqa: PTH101 (a link would be followed)
        return os.open(f"/proc/self/fd/{place}", FOLDER & ~os.O_NOFOLLOW)
    finally:
        os.close(place)


class Warden:
    """One server process, its descendants, and the order they run under."""

    def __init__(self, order: dict) -> None:  # type: ignore[type-arg]
        """Become the subreaper of all that is started from here."""
        self.order = order
        self.exit_code: int | None = None
        self.asked_to_stop = False
        self.log_began = os.fstat(2).st_size
        self.log_lost = 0
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.pid = self._start()
        os.write(1, b"%d\n" % self.pid)

    def run(self) -> int:
        """Wait for the server's or webdyno's end, then leave nothing behind."""
        may_stop = False
        while self.exit_code is None and not self.asked_to_stop:
            readable, _, _ = select.select([0, self.wake_read], [], [], LOOKED_AT_S)
            self._limit_log()
            if 0 in readable:
                may_stop = bool(os.read(0, 1))
                self.asked_to_stop = True
            self._reap(readable)
        # A webdyno that dies without a word loses its lock only some time after its pipe.
        died = self.asked_to_stop and not may_stop
        if self.exit_code is None:
            self._stop_gracefully()
        elif not self.asked_to_stop:
            with contextlib.suppress(BrokenPipeError):
                os.write(1, b"%d\n" % len(descendants(os.getpid())))
        self._kill_all()
        self._do_afterwards()
        self._limit_log()
        self._clean_up_if_alone(LOCK_WITHIN_S if died else 0.0)
        return self.exit_code if self.exit_code is not None else 1

    def _on_stop(self, *_: object) -> None:
        self.asked_to_stop = True

    def _start(self) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            self._become_server(parent)
        except Exception as error:  # noqa: BLE001 (it would be lost)
            why: object = None
            if isinstance(error, PermissionError):
                folder, program, user = (self.order[key] for key in ("folder", "program", "user"))
                why = refusal(folder, user) or refusal(program, user)
            why = why or error
            os.write(2, f"webdyno: can't start {self.order['argv'][0]}: {why}\n".encode())
        finally:
            os._exit(127)
        raise AssertionError("not reached")

    def _become_server(self, parent: int) -> None:
        """Turn into the server; nothing may be imported here, since its user may not read it."""
        order = self.order
        os.setsid()  # Apache signals its whole process group, which must not be the warden's
        for path in order["groups_to_join"]:
            with open(path, "w") as procs:  # noqa: PTH123 (nothing needless is imported here)
                procs.write("0")
        os.sched_setaffinity(0, order["cpus"])
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if order["uid"] is not None:
            os.setgroups(order["groups"])
            os.setresgid(order["gid"], order["gid"], order["gid"])
            os.setresuid(order["uid"], order["uid"], order["uid"])
        os.chdir(order["folder"])  # nobody stands where he couldn't get by himself
        os.umask(0o022)
        # After the change of user, which clears it.
        self.libc.prctl(PR_SET_PDEATHSIG, order["stop_signal"], 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)
        for number in range(1, signal.NSIG):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        nothing = os.open("/dev/null", os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.execve(order["program"], order["argv"], order["environment"])

    def _reap(self, readable: list[int]) -> bool:
        """Take in the exit codes of ended children; False when no child is left."""
        if self.wake_read in readable:
            os.read(self.wake_read, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self.exit_code = code if code >= 0 else 128 - code

    def _limit_log(self) -> None:
        size = os.fstat(2).st_size
        if size - self.log_began <= MOST_LOG_BYTES:
            return
        with contextlib.suppress(OSError):
            log = os.open("/proc/self/fd/2", os.O_RDWR | os.O_APPEND)
            # Whole lines: half a secret would not be recognised, and so not hidden.
            begin = os.pread(log, LOG_BEGIN_BYTES, self.log_began)
            begin_bytes = begin.rfind(b"\n") + 1
            # Up to where the server is by now: what it writes from here to the cut is lost.
            size = os.fstat(log).st_size
            end = os.pread(log, 2 * LOG_END_BYTES, size - LOG_END_BYTES).partition(b"\n")[2]
            self.log_lost += size - self.log_began - begin_bytes - len(end)
            os.ftruncate(log, self.log_began + begin_bytes)
            limit = MOST_LOG_BYTES >> 20
            said = f"[webdyno cut {self.log_lost} bytes: a log may have {limit} MiB a start]\n"
            os.write(log, said.encode() + end)
            os.close(log)

    def _stop_gracefully(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, self.order["stop_signal"])
        deadline = time.monotonic() + self.order["stop_within_s"]
        while self.exit_code is None and (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.wake_read], [], [], min(left, LOOKED_AT_S))
            self._limit_log()
            self._reap(readable)

    def _kill_all(self) -> None:
        deadline = time.monotonic() + KILL_WITHIN_S
        while self._reap([]) and time.monotonic() < deadline:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            readable, _, _ = select.select([self.wake_read], [], [], 0.02)
            self._reap(readable)

    def _do_afterwards(self) -> None:
        if words := self.order["afterwards"]:
            import subprocess  # few need it

            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    words,
                    env=self.order["environment"],
                    stdin=subprocess.DEVNULL,
                    stdout=2,
                    check=False,
                    timeout=AFTERWARDS_WITHIN_S,
                )

    def _clean_up_if_alone(self, patience_s: float) -> None:
        """Remove control groups and files when webdyno is gone and can't do it any more."""
        workspace = self.order["workspace"]
        try:
            lock = os.open(workspace["lock"], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            # Shared: webdyno's own lock excludes it, those of other services' wardens don't.
            if not done_within(patience_s, fcntl.flock, lock, SHARED_AT_ONCE):
                return
        except FileNotFoundError:
            pass  # another service's warden was quicker; the group of this one is still there
        except OSError:
            return
        with contextlib.suppress(OSError):  # the next workspace's maker says what stays
            remove_tree(workspace["path"])
        for procs in self.order["groups_to_join"]:
            done_within(KILL_WITHIN_S, remove_group, os.path.dirname(procs))  # noqa: PTH120
        # While a stack's groups hold those of other services, their wardens are to remove them.
        for top in [*self.order["groups_to_remove"], *workspace["groups"]]:
            for group, _, _ in os.walk(top, topdown=False):
                done_within(SIBLINGS_WITHIN_S, remove_group, group)


def refusal(program: str, user: str | None) -> str | None:
    """Return which rights we, the servers' user by now, lack to run a program or enter a folder."""
    with contextlib.suppress(OSError), open(program, "rb") as script:  # noqa: PTH123
        first, _, rest = script.readline(4096).partition(b"#!")
        if not first and rest.split():  # its interpreter may be the one that is out of reach
            return refusal(os.fsdecode(rest.split()[0]), user)
    path = os.path.abspath(program)  # noqa: PTH100
    folder = ""
    for name in path.split("/")[1:]:
        if not os.access(folder or "/", os.X_OK):
            what = f"may not enter the folder {folder}"
            break
        folder += f"/{name}"
    else:
        if not os.path.exists(path) or os.access(path, os.X_OK):  # noqa: PTH110
            return None
        what = f"may not {'enter the folder' if os.path.isdir(path) else 'run'} {path}"  # noqa: PTH112
    return f"{user or 'this user'}, as whom servers run, {what}; install it elsewhere, or allow it"


def done_within(within_s: float, what: Callable[..., object], *arguments: object) -> bool:
    """Do what may be refused for a moment; False when it still is after so long."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            what(*arguments)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def remove_group(folder: str) -> None:
    """Remove a control group if it's there; one whose last process has just ended can be busy."""
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(folder)  # noqa: PTH106


def descendants(root: int) -> list[int]:
    """Process ids of all children, grandchildren and so on."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                    # The command's name may hold spaces and brackets: read on after its end.
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    below_root: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        below_root += below
        todo += below
    return below_root


def read_exactly(count: int) -> bytes:
    """Read so many bytes of standard input, and none of what comes behind them."""
    content = b""
    while len(content) < count:
        part = os.read(0, count - len(content))
        if not part:
            sys.exit(1)  # webdyno has ended
        content += part
    return content


if __name__ == "__main__":
    sys.exit(Warden(json.loads(read_exactly(int(read_exactly(8))))).run())
