"""Which processes hold a listening socket, as /proc tells it."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

LISTENING_TCP = "0A"
"""TCP_LISTEN in the column `st` of /proc/net/tcp."""
ACCEPTING_UNIX = 0x10000
"""__SO_ACCEPTCON in the column `Flags` of /proc/net/unix."""


def holders(pids: Collection[int], port: int, path: Path | None) -> list[int] | None:
    """Give those of some processes that hold the socket listening on a port, or at a path.

    None where the kernel doesn't let us look.
    """
    found = []
    for pid in pids:
        try:
            if _listening(pid, port, path) & _sockets_of(pid):
                found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            return None
    return found


def _listening(pid: int, port: int, path: Path | None) -> set[str]:
    """Give the inodes of what listens there, in the network namespace of a process."""
    return set(_unix(pid, path) if path else _tcp(pid, port))


def _tcp(pid: int, port: int) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a kernel without IPv6
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == LISTENING_TCP and int(local.rpartition(":")[2], 16) == port:
                    yield rest[5]


def _unix(pid: int, path: Path) -> Iterator[str]:
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *name = line.split(maxsplit=7)
        if name == [str(path)] and int(flags, 16) & ACCEPTING_UNIX:
            yield inode


def _sockets_of(pid: int) -> set[str]:
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found
