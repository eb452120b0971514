"""Sockets: free ports, and connections on which each response has a deadline and a limit."""

import errno
import io
import random
import socket
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from webdyno.model.errors import OperationError
from webdyno.model.format import size
from webdyno.model.testbed import OWN_NETWORKS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

HOST = "127.0.0.1"
LOWEST = 10_240
MOST_PORTS = 1000
"""Ports are drawn from at least so many, even where outgoing connections leave fewer."""
TRIES = 200
NETWORK_FROM = 16
"""Addresses before this one belong to the testbed that has a network of its own."""

NewSocket = Callable[[], socket.socket]
"""Makes a TCP socket; on some testbeds in another network namespace than ours."""
MOST_RESPONSE_BYTES = 1 << 28
"""Most bytes of one response on the wire, headers included: more is an endless stream, no page."""


def free_port(
    new_socket: NewSocket = socket.socket, taken: Container[int] = (), host: str = HOST
) -> int:
    """Give a port that nobody listens on and that no outgoing connection will be given.

    `taken` are ports that were given away already, though nobody may listen on them yet.

    The kernel takes ports of outgoing connections from its local port range; a port below that
    can't be taken by the load's own connections between now and the server's start. It is drawn
    at random, so that stacks which start at the same time don't meet. `new_socket` makes sockets
    where the port is to be free, at the address `host`.
    """
    highest = max(LOWEST + MOST_PORTS, _first_local_port()) - 1
    for _ in range(TRIES):
        port = random.SystemRandom().randint(LOWEST, highest)
        if port not in taken and _can_listen(port, new_socket, host) is None:
            return port
    raise OperationError(f"found no free port on {host} between {LOWEST} and {highest}")


def tcp(host: str, new_socket: NewSocket = socket.socket) -> socket.socket:
    """Make a socket that can be connected to an address.

    An IPv6 address have servers alone that ran before, on this machine.
    """
    return socket.socket(socket.AF_INET6) if ":" in host else new_socket()


def own_network_host() -> str:
    """Draw an address for servers that have a network of their own, at random as ports are.

    It isn't the client's.
    """
    offset = random.SystemRandom().randrange(NETWORK_FROM, OWN_NETWORKS.num_addresses - 1)
    return str(OWN_NETWORKS[offset])


def demand_port(port: int) -> int:
    """Give the port back if it is free, else raise OperationError that says who holds it."""
    fault = _can_listen(port)
    if fault is None:
        return port
    if fault.errno == errno.EADDRINUSE:
        raise OperationError(
            f"port {port} is in use{_holder(port)}; stop that or choose another --port"
        )
    raise OperationError(f"can't listen on port {port}: {fault.strerror}; choose another --port")


def _can_listen(
    port: int, new_socket: NewSocket = socket.socket, host: str = HOST
) -> OSError | None:
    with new_socket() as probe:
        # As servers do it: connections that linger after their end don't block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return error
    return None


def _holder(port: int) -> str:
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return ""
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
        if listens and connection.pid is not None:
            try:
                name = psutil.Process(connection.pid).name()
            except psutil.Error:
                break
            return f" by {name} (process {connection.pid})"
    return ""


def _first_local_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return 32_768


class TooMuch(Exception):  # noqa: N818 (it becomes a line of the pre-flight check)
    """A response that never ends, or takes too long; the message says which."""


class TooLate(TooMuch):
    """It would have taken longer than its time."""


class Wire(io.RawIOBase):
    """A socket for one response after the other.

    A socket's own timeout begins again with each byte, so that a server which drips never times
    out. Here `begins` sets the moment by which the whole response has to be there.
    """

    def __init__(self, connection: socket.socket, within_s: float) -> None:
        """Read and write on an open connection; each response may take so many seconds."""
        super().__init__()
        self._connection = connection
        self._within_s = within_s
        self._reader = _Kept(self)
        self.begins()

    def begins(self) -> None:
        """Begin another request and its response."""
        self._began = time.monotonic()
        self._deadline = self._began + self._within_s
        self._came = 0

    @property
    def so_far(self) -> str:
        """Say how much has come of the response, and in which time; empty before its first byte."""
        took_s = time.monotonic() - self._began
        return f"{size(self._came)} after {took_s:.3g} s" if self._came else ""

    def makefile(self, *_: object, **__: object) -> "_Kept":
        """Give what `http.client` reads from: always the same, as it reads ahead."""
        return self._reader

    def sendall(self, data: "ReadableBuffer") -> None:
        with self._in_time():
            self._connection.sendall(data)

    def recv(self, most: int) -> bytes:
        """Give what comes next, nothing at the end."""
        with self._in_time():
            came = self._connection.recv(most)
        self._count(len(came))
        return came

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill a buffer with what comes next; give its length, 0 at the end."""
        with self._in_time():
            came = self._connection.recv_into(buffer)
        self._count(came)
        return came

    def close(self) -> None:
        """Close the connection with the reader."""
        self._connection.close()
        super().close()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        what = "its response wasn't complete" if self._came else "no byte of a response came"
        late = TooLate(f"{what} within {self._within_s:g} s")
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise late
        self._connection.settimeout(left_s)
        try:
            yield
        except TimeoutError:
            raise late from None

    def _count(self, came: int) -> None:
        self._came += came
        if self._came > MOST_RESPONSE_BYTES:
            raise TooMuch(f"its response has more than {MOST_RESPONSE_BYTES >> 20} MiB")


class _Kept(io.BufferedReader):
    """A reader that outlives the responses read from it."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)

    def close(self) -> None:
        """Leave it open: http.client closes its reader after a response."""
