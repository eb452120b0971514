"""Servers of any manners for tests: each connection is answered by a function."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

Manners = Callable[[socket.socket], None]


@contextmanager
def serving(manners: Manners, address: tuple[str, int] = ("127.0.0.1", 0)) -> Iterator[int]:
    """Serve on a free port, which is given; a connection is closed when its function is done."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.create_server(address, family=family) as listening:
        threading.Thread(target=_serve, args=(listening, manners), daemon=True).start()
        yield listening.getsockname()[1]


def _serve(listening: socket.socket, manners: Manners) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_response, args=(connection, manners), daemon=True).start()


def _response(connection: socket.socket, manners: Manners) -> None:
    with connection, suppress(OSError):
        manners(connection)


def saying(response: bytes) -> Manners:
    """Answer each request of a connection with the same bytes."""

    def say(connection: socket.socket) -> None:
        while connection.recv(65_536):
            connection.sendall(response)

    return say


def resetting(code: ErrorCodes) -> Manners:
    """Reset the stream of each request over HTTP/2, as gRPC servers do with a GET."""

    def say(connection: socket.socket) -> None:
        http2 = H2Connection(H2Configuration(client_side=False))
        http2.initiate_connection()
        connection.sendall(http2.data_to_send())
        while came := connection.recv(65_536):
            try:
                events = http2.receive_data(came)
            except ProtocolError:  # it is asked by another one
                return
            for event in events:
                if isinstance(event, RequestReceived) and event.stream_id:
                    http2.reset_stream(event.stream_id, code)
            connection.sendall(http2.data_to_send())

    return say


def page(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Give a response of HTTP/1.1."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


HELLO = page(b"hello")
