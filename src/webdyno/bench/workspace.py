"""Folders for what servers need while they run: short paths that their user can reach.

A run's folder may lie where the servers' user can't go (`/root`), and a socket's path may have 107
bytes at most; so whatever lives only as long as a stack is kept under the temporary directory. A
lock tells whether the webdyno that made a workspace still lives: the kernel drops it at its end,
kill -9 included. Each new workspace sweeps away those whose maker is gone.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webdyno.bench.control_group import ControlGroup
from webdyno.bench.memory import forget_limit
from webdyno.model.mistake import Trouble

LOCK = "lock"


class Workspace:
    """A folder of its own for one running stack; removed at the end."""

    def __init__(self) -> None:
        """Make the folder and sweep away what killed runs left."""
        home = home_folder()
        live = open_folder(home / "live")
        with _guard(home):
            _sweep(live)
            self.path = Path(tempfile.mkdtemp(dir=live, prefix=""))
            self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDONLY, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path.chmod(0o755)

    @property
    def name(self) -> str:
        """A name that no other running stack has."""
        return self.path.name

    @property
    def lock_path(self) -> Path:
        """The file whose lock is held as long as this process lives."""
        return self.path / LOCK

    def remove(self) -> None:
        """Remove the folder; safe to call twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def home_folder() -> Path:
    """Give webdyno's folder of this user in the temporary directory; make it if need be."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 (owner is checked)
        if _everybody_may_enter(Path(parent)):
            home = Path(parent).resolve() / f"webdyno-{os.geteuid()}"
            return open_folder(home)
    raise Trouble("no temporary directory that other users may enter; set TMPDIR to one")


def open_folder(path: Path) -> Path:
    """Make a folder that is ours to write and everybody's to enter, whatever the umask is."""
    path.mkdir(exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Trouble(f"{path} belongs to somebody else; remove it or set TMPDIR")
    path.chmod(0o755)
    return path


def _everybody_may_enter(folder: Path) -> bool:
    try:
        return all(
            path.stat().st_mode & stat.S_IXOTH for path in [folder.resolve(), *folder.parents]
        ) and os.access(folder, os.W_OK)
    except OSError:
        return False


@contextmanager
def _guard(home: Path) -> Iterator[None]:
    """One at a time: nobody sweeps between another one's making a workspace and locking it."""
    descriptor = os.open(home / "guard", os.O_CREAT | os.O_RDONLY, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(live: Path) -> None:
    for left in live.iterdir():
        try:
            lock = os.open(left / LOCK, os.O_RDONLY)
        except OSError:
            shutil.rmtree(left, ignore_errors=True)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its webdyno lives
        finally:
            os.close(lock)
        if group := ControlGroup.existing(left.name):
            group.end()
        forget_limit(left.name)
        shutil.rmtree(left, ignore_errors=True)
