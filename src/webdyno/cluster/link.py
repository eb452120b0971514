"""How long a byte takes to another host and back, and how many get there in a second.

One side waits for the other, which times itself: no figure is a difference of two clocks.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median

from webdyno.model.cluster import LinkFacts

ROUND_TRIPS = 200
SENDS_FOR_S = 1.0
CHUNK = bytes(2**18)
PATIENCE_S = 20.0
"""How long either side waits for the other."""


def answer_link(address: str) -> Iterator[int]:
    """Give the port on which one measurement is waited for, then answer it."""
    with closing(socket.create_server((address, 0))) as server:
        server.settimeout(PATIENCE_S)
        yield server.getsockname()[1]
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(ROUND_TRIPS):
                connection.sendall(connection.recv(1))
            while connection.recv(len(CHUNK)):
                pass
            connection.sendall(b".")


def measure_link(address: str, port: int) -> LinkFacts:
    """Measure the link to a host that answers there. Raises OSError where it doesn't."""
    with socket.create_connection((address, port), PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        round_trips_s = [_round_trip_s(connection) for _ in range(ROUND_TRIPS)]
        began_s, sent_bytes = time.monotonic(), 0
        while time.monotonic() - began_s < SENDS_FOR_S:
            sent_bytes += connection.send(CHUNK)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # when it has everything
        took_s = time.monotonic() - began_s
    return LinkFacts(
        round_trip_us=median(round_trips_s) * 1e6, rate_bits_per_s=8 * sent_bytes / took_s
    )


def _round_trip_s(connection: socket.socket) -> float:
    began_s = time.monotonic()
    connection.sendall(b".")
    connection.recv(1)
    return time.monotonic() - began_s
