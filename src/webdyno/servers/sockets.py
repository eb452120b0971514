"""Sockets: free ports, and what connects to servers."""

import errno
import random
import socket
from collections.abc import Callable, Container
from pathlib import Path

import psutil

from webdyno.core.errors import OperationError
from webdyno.core.testbed import OWN_NETWORKS

HOST = "127.0.0.1"
LOWEST = 10_240
MOST_PORTS = 1000
"""Ports are drawn from at least so many, even where outgoing connections leave fewer."""
TRIES = 200
NETWORK_FROM = 16
"""Addresses before this one belong to the testbed that has a network of its own."""

NewSocket = Callable[[], socket.socket]
"""Makes a TCP socket; on some testbeds in another network namespace than ours."""


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
