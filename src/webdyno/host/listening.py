"""Which processes hold a listening socket, as /proc reports it; those found so are only watched."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import psutil

LISTENING_TCP = "0A"
"""TCP_LISTEN in the column `st` of /proc/net/tcp."""
IPV4 = 4
MAPPED = bytes(10) + b"\xff\xff"
"""Before the four bytes of an IPv4 address, where a socket has both kinds."""
ACCEPTING_UNIX = 0x10000
"""__SO_ACCEPTCON in the column `Flags` of /proc/net/unix."""


def holders(pids: Collection[int], port: int, path: Path | None, near: int) -> list[int] | None:
    """Give those of some processes that hold the socket listening on a port, or at a path.

    `near`: a process in the same network namespace. None where the kernel doesn't let us look.
    """
    try:
        listening = set(_unix(near, path) if path else _tcp(near, port))
        return [pid for pid in pids if listening & _sockets_of(pid)]
    except OSError:
        return None


def who_listens(port: int) -> list[int]:
    """Give the processes of this machine that listen on a port: those that we may look into."""
    listening = set(_tcp("self", port))
    pids = []
    for pid in psutil.pids() if listening else []:
        with suppress(PermissionError):
            if listening & _sockets_of(pid):
                pids.append(pid)
    return pids


def addresses(pids: Collection[int]) -> list[str]:
    """Give the TCP addresses that some processes listen at: `127.0.0.1:8000`."""
    texts: set[str] = set()
    for pid in pids:  # psutil would look into our own network namespace for all of them
        with suppress(OSError):
            sockets = _sockets_of(pid)
            texts |= {_written(local) for local, inode in _listening(pid) if inode in sockets}
    return sorted(texts)


def _written(local: str) -> str:
    """Write an address as people do: it is kept as words of four bytes in the machine's order.

    A socket for both kinds, as Java's are, has IPv4 addresses mapped to IPv6 ones.
    """
    words, _, port = local.partition(":")
    swapped = b"".join(
        int(words[start : start + 8], 16).to_bytes(4, sys.byteorder)
        for start in range(0, len(words), 8)
    )
    host = ip_address(swapped.removeprefix(MAPPED))
    return f"{host if host.version == IPV4 else f'[{host}]'}:{int(port, 16)}"


def _tcp(near: int | str, port: int) -> Iterator[str]:
    wanted = f":{port:04X}"
    return (inode for local, inode in _listening(near, wanted) if local.endswith(wanted))


def _listening(near: int | str, text: str = "") -> Iterator[tuple[str, str]]:
    """Give address and inode of the sockets that listen in a namespace, if a text is in its line.

    There may be very many lines of connections that just wait for their time to be over.
    """
    for name in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a kernel without IPv6
            for line in Path(f"/proc/{near}/net/{name}").read_text().splitlines()[1:]:
                if text in line:
                    _, local, _, state, *rest = line.split()
                    if state == LISTENING_TCP:
                        yield local, rest[5]


def _unix(near: int, path: Path) -> Iterator[str]:
    for line in Path(f"/proc/{near}/net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *name = line.split(maxsplit=7)
        if name == [str(path)] and int(flags, 16) & ACCEPTING_UNIX:
            yield inode


def _sockets_of(pid: int) -> set[str]:
    """Give the inodes of a process's open sockets; none when it has ended."""
    inodes = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    return inodes


class FoundProcess:
    """A server that ran before us: it says what a `ServerProcess` does, and is never stopped.

    Its processes are looked for again when one of them has ended: somebody may have restarted it.
    """

    left_running = 0

    def __init__(self, port: int | None) -> None:
        """Look for what listens on a port; None: it is on another machine, with processes there."""
        self._port = port
        self._roots: list[int] = []

    def roots(self) -> list[int]:
        """Those of its processes that none of the others has started; none if we may not see it."""
        if self._port is None:
            return []
        if not self._roots or not all(map(psutil.pid_exists, self._roots)):
            pids = set(who_listens(self._port))
            self._roots = sorted(pid for pid in pids if not pids.intersection(_parents(pid)))
        return self._roots

    def pids(self) -> list[int]:
        """Its processes, with all that they have started."""
        known: dict[int, None] = {}
        for pid in self.roots():
            known |= dict.fromkeys([pid, *_children(pid)])
        return list(known)

    def poll(self) -> int | None:
        """None: its end is seen by those who ask it."""
        return None

    def listens(self, port: int, path: Path | None) -> bool:  # noqa: ARG002
        """Whoever listens there is what was requested."""
        return True

    def ask_to_stop(self) -> None:
        """It isn't ours to stop."""

    def stop(self) -> None:
        """It isn't ours to stop."""


def _parents(pid: int) -> Sequence[int]:
    try:
        return [parent.pid for parent in psutil.Process(pid).parents()]
    except psutil.Error:
        return []


def _children(pid: int) -> Sequence[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
