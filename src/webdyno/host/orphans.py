"""Ends what a program leaves running, also in sessions of its own."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36
KILL_WITHIN_S = 5.0
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def no_orphans() -> Iterator[None]:
    """Kill at the end all that was started inside, by whatever descendants of it.

    Orphans become children of this process, which is their subreaper for so long.
    """
    before = _children()
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        deadline = time.monotonic() + KILL_WITHIN_S
        while (left := _children() - before) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}
