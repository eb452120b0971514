"""What the kernel says in files of /proc, among it names of any bytes, as others chose them."""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """A mounted file system."""

    path: str
    """With blanks and line feeds in it escaped: proc_pid_mounts(5)."""
    kind: str
    options: list[str]


def kernel_lines(path: Path) -> list[str]:
    """Read lines, which end at line feeds alone; raise OSError.

    Names in them are as `os.fsdecode` has them, with all blanks that Python knows but the kernel
    doesn't.
    """
    return os.fsdecode(path.read_bytes()).split("\n")[:-1]


def mounts() -> list[Mount]:
    """Return what is mounted for this process."""
    lines: list[str] = []
    with suppress(OSError):
        lines = kernel_lines(Path("/proc/self/mounts"))
    fields = (line.split(" ") for line in lines)
    return [Mount(path, kind, options.split(",")) for _, path, kind, options, *_ in fields]
