"""Where processes listen, as everybody may read of the kernel, and which of them has a socket."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

import psutil

from webdyno.core.kernel import kernel_lines

LISTENING_TCP = "0A"
"""TCP_LISTEN in the column `st` of /proc/net/tcp."""
IPV4 = 4
MAPPED = bytes(10) + b"\xff\xff"
"""Before the four bytes of an IPv4 address, where a socket has both kinds."""
ACCEPTING_UNIX = 0x10000
"""__SO_ACCEPTCON in the column `Flags` of /proc/net/unix."""
CONNECTED_UNIX = 3
"""SS_CONNECTED in the column `St`."""
UNIX_LINE = re.compile(
    r"\S+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) [0-9A-F]+ ([0-9A-F]+) +([0-9]+)(?: (.*))?"
)
"""Flags, state, inode and name; what else is there is the rest of a name with a line feed."""
ANY = ("0.0.0.0", "[::]")  # noqa: S104 (that is what others listen at)


class UnixSocket(NamedTuple):
    """A Unix socket of a network namespace, as /proc/net/unix has it.

    Nobody vouches for that: a name may hold a line feed, and what looks like another socket's line.
    """

    inode: str
    name: str
    """Its path, or a name that is none behind an `@`; empty without."""
    accepts: bool
    is_connected: bool


class Listens(NamedTuple):
    """Where a server listens."""

    port: int
    path: Path | None
    """Of a Unix socket, if it is one."""
    host: str | None
    """The address at which it is asked; None where that is anyone's in a network of its own."""
    uid: int = 0
    """The user as whom it runs."""
    is_udp: bool = False
    """Whether it is asked by UDP, as over HTTP/3."""


def holders(pids: Collection[int], place: Listens, near: int) -> list[int] | None:
    """Return those processes that hold the listening socket; None if we may not look.

    Then whoever listens there has to be the server's user, or root. None of them does, if somebody
    else listens on that port as well: his address may be the more exact one, which gets the
    connections. (Who is behind a Unix socket the kernel says of each connection.)
    `near`: a process in the same network namespace.
    """
    try:
        if place.path:
            named = (each for each in unix_sockets(near) if each.name == str(place.path))
            listening, users = {each.inode for each in named if each.accepts}, {place.uid}
        else:
            sockets = dict(_asked(near, place))
            listening, users = set(sockets), set(sockets.values())
    except OSError:
        return None
    try:
        held = {pid: listening & _sockets_of(pid) for pid in pids}
    except OSError:
        return None if users and users <= {place.uid, 0} else []
    may_be_others = place.path is None and place.host is not None
    if may_be_others and listening - set().union(*held.values()):
        return []
    return [pid for pid, sockets in held.items() if sockets]


def who_listens(port: int) -> list[int]:
    """Return the processes of this machine that listen on a port: those that we may look into."""
    listening = {inode for inode, _ in _asked("self", Listens(port, None, None))}
    pids = []
    for pid in psutil.pids() if listening else []:
        with suppress(PermissionError):
            if listening & _sockets_of(pid):
                pids.append(pid)
    return pids


def is_among(listeners: Iterable[str], port: int, host: str | None) -> bool:
    """Whether an address is one of those, or in one; without a host by its port alone."""
    hosts = {each.rpartition(":")[0] for each in listeners if each.endswith(f":{port}")}
    return bool(hosts) and (host is None or not hosts.isdisjoint({*ANY, host}))


def addresses(pids: Collection[int]) -> list[str]:
    """Return the TCP addresses that some processes listen at: `127.0.0.1:8000`."""
    texts: set[str] = set()
    for pid in pids:  # psutil would look into our own network namespace for all of them
        with suppress(OSError):
            sockets = _sockets_of(pid)
            texts |= {_written(local) for local, inode, _ in _listening(pid) if inode in sockets}
    return sorted(texts)


def listening_at(pid: int, *, is_udp: bool = False) -> list[str]:
    """Return the addresses that are listened at in the network of a process: by TCP, or by UDP."""
    try:
        return sorted({_written(local) for local, _, _ in _listening(pid, is_udp=is_udp)})
    except OSError:
        return []


def _written(local: str) -> str:
    host, port = _host(local), int(local.partition(":")[2], 16)
    return f"{host if host.version == IPV4 else f'[{host}]'}:{port}"


def _host(local: str) -> IPv4Address | IPv6Address:
    """The kernel writes addresses as words of four bytes in the machine's order.

    A socket for both kinds, as Java's are, has IPv4 addresses mapped to IPv6 ones.
    """
    words = local.partition(":")[0]
    swapped = b"".join(
        int(words[start : start + 8], 16).to_bytes(4, sys.byteorder)
        for start in range(0, len(words), 8)
    )
    return ip_address(swapped.removeprefix(MAPPED))


def _asked(near: int | str, place: Listens) -> Iterator[tuple[str, int]]:
    """Yield inode and user of each socket that gets connections, or datagrams, to a place."""
    wanted = f":{place.port:04X}"
    for local, inode, uid in _listening(near, wanted, is_udp=place.is_udp):
        is_asked = (
            place.host is None
            or _host(local).is_unspecified
            or (_host(local) == ip_address(place.host))
        )
        if local.endswith(wanted) and is_asked:
            yield inode, uid


def _listening(
    near: int | str, text: str = "", *, is_udp: bool = False
) -> Iterator[tuple[str, str, int]]:
    """Yield address, inode and user of sockets that listen in a namespace, with a text in the line.

    There may be very many lines of connections that just wait for their time to be over. By UDP
    each socket counts: one that is connected to a client gets what that one sends.
    """
    for name in ("udp", "udp6") if is_udp else ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a kernel without IPv6
            for line in kernel_lines(Path(f"/proc/{near}/net/{name}"))[1:]:
                if text in line:
                    _, local, _, state, *rest = line.split()
                    if is_udp or state == LISTENING_TCP:
                        yield local, rest[5], int(rest[3])


def unix_sockets(near: int) -> Iterator[UnixSocket]:
    """Yield the Unix sockets of a process's network namespace; raise OSError."""
    for line in kernel_lines(Path(f"/proc/{near}/net/unix"))[1:]:
        if match := UNIX_LINE.fullmatch(line):
            flags, state, inode, name = match.groups(default="")
            accepts = bool(int(flags, 16) & ACCEPTING_UNIX)
            yield UnixSocket(inode, name, accepts, int(state, 16) == CONNECTED_UNIX)


def _sockets_of(pid: int) -> set[str]:
    """Inodes of a process's open sockets; none when it has ended."""
    inodes = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    return inodes
