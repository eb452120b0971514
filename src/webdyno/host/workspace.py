"""Folders for what servers need while they run, and locks that say whose are still alive.

A run's folder may lie where the servers' user can't go (`/root`), and a socket's path may have 107
bytes at most; so whatever lives only as long as a stack is kept in the first temporary directory
that is fit for servers. The workspace stays ours: what servers may write to are folders in it that
they are given. A lock says whether the webdyno that made a workspace still lives: the kernel drops
it at its end, kill -9 included. Each new workspace sweeps away those whose maker is gone.
"""

import fcntl
import logging
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from webdyno.core.errors import OperationError
from webdyno.core.files import write_whole
from webdyno.core.kernel import kernel_lines
from webdyno.core.whose import others_place
from webdyno.host.control_group import ControlGroup, forget_groups
from webdyno.host.users import ENTERED, OPEN, everybody_enters, make_private, server_user
from webdyno.host.warden import remove_tree

logger = logging.getLogger(__name__)

LOCK, GUARD = "lock", "guard"
LOCKS_HELD = Path("/proc/locks")
SOCKET_PATH_BYTES = 107
"""Of a Unix socket's path, see unix(7): `sun_path` has 108 with the byte that ends it."""
BELOW_HOME_BYTES = 60
"""Left for a socket's path below our folder: `/live/WORKSPACE/ROLE/status.sock`.

A role's name has 24 at most.
"""
PLAIN = re.compile(r"[\w./+@=,-]+")
LEAST_FREE_BYTES = 64 * 2**20
"""An empty MariaDB and a small site; below that nothing starts."""


class Workspace:
    """A folder of its own for one running stack; removed at the end."""

    def __init__(self) -> None:
        """Make the folder and sweep away what killed runs left."""
        home = home_folder()
        live = open_folder(home / "live")
        # Nobody sweeps between another one's making a workspace and locking it.
        with lock_held(home / GUARD):
            _sweep(live)
            self.path = Path(tempfile.mkdtemp(dir=live, prefix=""))
            self._lock = open_lock(self.path / LOCK)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        logger.debug("made %s", self.path)
        self.path.chmod(ENTERED)  # servers' users know what theirs is called

    @property
    def name(self) -> str:
        """A name that no other running stack has."""
        return self.path.name

    @property
    def lock_path(self) -> Path:
        """The file whose lock is held as long as this process lives."""
        return self.path / LOCK

    def make_kept(self) -> Path:
        """Make a folder for what servers have and say while it lives, which nobody else reads."""
        return make_private(self.path / "kept")

    def remove(self) -> None:
        """Remove the folder; safe to call twice. What stays is reported by `sweep`."""
        logger.debug("removes %s", self.path)
        with suppress(OSError):
            remove_tree(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class OtherRun(NamedTuple):
    """A process that has servers of webdyno up."""

    pid: int
    command: str


def others_running() -> list[OtherRun]:
    """Return the other processes that have servers of webdyno up now, whoever started them.

    Between two rounds a run has none; the lock of a run's folder is for that run alone.
    """
    locked = locks_held()
    pids: set[int] = set()
    for lock in _locks():
        with suppress(OSError):
            if pid := locked.get(lock.lstat().st_ino):
                pids.add(pid)
    return [OtherRun(pid, _command_of(pid)) for pid in sorted(pids - {os.getpid()})]


def _locks() -> Iterator[Path]:
    """Nothing but names: what others have in /tmp may be links to what can't be looked at."""
    for place in dict.fromkeys(_temporary_folders()):
        for home in _inside(place):
            if home.name.startswith("webdyno-"):
                yield from (workspace / LOCK for workspace in _inside(home / "live"))


def _inside(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from folder.iterdir()


def open_lock(path: Path, folder: int | None = None) -> int:
    """Open a file for locking, made if need be; raise OperationError for what is none.

    With its folder open, it is that of its name in there.
    """
    flags = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path if folder is None else path.name, flags, 0o600, dir_fd=folder)
    except OSError as error:
        raise OperationError(f"{path}: can't be opened as a lock: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise OperationError(f"{path} is no file; remove it")
    return lock


def home_folder() -> Path:
    """Return webdyno's folder of this user in a temporary directory, made if need be.

    Raise OperationError, with what is wrong with each of them, when no temporary directory will do.
    """
    faults: list[str] = []
    for place in dict.fromkeys(_temporary_folders()):
        home = place / f"webdyno-{os.geteuid()}"
        if fault := _fault(place, home):
            faults.append(f"{place} {fault}")
        else:
            _end_packages(open_folder(home))
            return home
    raise OperationError(
        f"no temporary directory is fit for servers: {'; '.join(faults)}; set TMPDIR to another"
    )


def _end_packages(home: Path) -> None:
    """Keep what others write into the temporary directory from being read as our files' package.

    Node looks for the nearest `package.json` in all folders above a file.
    """
    nearest = home / "package.json"
    if not nearest.is_file():
        write_whole(nearest, "{}\n")
        nearest.chmod(0o644)


def open_folder(path: Path) -> Path:
    """Make a folder that is ours to write and everybody's to enter, whatever the umask is."""
    path.mkdir(exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise OperationError(f"{path} belongs to somebody else; remove it or set TMPDIR")
    path.chmod(OPEN)
    return path


def _temporary_folders() -> Iterator[Path]:
    with suppress(FileNotFoundError):  # none in which a file can be made
        yield Path(tempfile.gettempdir()).resolve()
    yield from (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 (owner is checked)


def _fault(place: Path, home: Path) -> str | None:
    """Why servers can't have their files in a place; None if they can."""
    if not PLAIN.fullmatch(str(home)):
        return "has characters in its path that servers' configurations don't take"
    try:
        with suppress(FileNotFoundError):  # it is made
            status = home.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                return f"has a {home.name} that belongs to another user"
        if not os.access(place, os.W_OK | os.X_OK):
            return "can't be written to" if place.is_dir() else "is not a folder"
        if not everybody_enters(place):
            return "can't be entered by other users"
        if (user := server_user()) and user.may_exchange(place):
            return f"can be changed by {user.name}"
        if others := others_place(place, is_above=True):
            return f"can be changed by others, who may write to {others}"
        system = os.statvfs(place)
    except OSError as error:
        return f"can't be used ({error.strerror})"
    if len(os.fsencode(home)) > SOCKET_PATH_BYTES - BELOW_HOME_BYTES:
        return "has too long a path for sockets"
    if system.f_flag & os.ST_NOEXEC:  # Varnish loads what it compiles there
        return "is mounted noexec"
    if system.f_bavail * system.f_frsize < LEAST_FREE_BYTES:
        return f"has less than {LEAST_FREE_BYTES // 2**20} MiB free"
    return None


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """Hold the lock of a file, made if need be, which one process at a time has."""
    descriptor = open_lock(path)
    logger.debug("waits for the lock of %s", path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sweep() -> list[str]:
    """Remove what killed runs left; say what can't be removed, and why."""
    home = home_folder()
    live = open_folder(home / "live")
    with lock_held(home / GUARD):
        return _sweep(live)


def _sweep(live: Path) -> list[str]:
    faults: list[str] = []
    for left in live.iterdir():
        try:
            lock = open_lock(left / LOCK)
        except OperationError:
            faults += _remove(left)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its webdyno lives
        finally:
            os.close(lock)
        if group := ControlGroup.existing(left.name):
            group.end()
        forget_groups(left.name)
        faults += _remove(left)
    return faults


def _remove(left: Path) -> list[str]:
    logger.debug("removes %s, which a killed run left", left)
    try:
        remove_tree(left)
    except FileNotFoundError:
        return []  # another run sweeps as well
    except OSError as error:
        return [f"{left}, left by an earlier run, can't be removed: {error.strerror}"]
    return []


def locks_held() -> dict[int, int]:
    """Return the process that holds a lock, by inode: proc_locks(5).

    Not by device as well, since some file systems report another one here.
    """
    try:
        lines = kernel_lines(LOCKS_HELD)
    except OSError:
        return {}
    locks = (line.split() for line in lines)
    return {
        int(words[5].split(":")[2]): int(words[4])
        for words in locks
        if words[1] == "FLOCK" and words[3] == "WRITE" and int(words[4]) > 0
    }


def _command_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return "?"
    return b" ".join(words).decode("utf-8", "replace")
