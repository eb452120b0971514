"""Servers of any manners for tests: each connection is answered by a function."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Manners = Callable[[socket.socket], None]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
ACK = END_STREAM = 1
END_HEADERS = 4
"""Kinds and flags of frames (RFC 9113, 6)."""
INTERNAL_ERROR, REFUSED_STREAM = 2, 7
STATUS_103, STATUS_200 = b"\x08\x03103", b"\x88"
"""Header blocks with a status alone (RFC 7541, 6)."""


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


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Give a frame of HTTP/2 (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def over_http2(answer: Callable[[int], bytes]) -> Manners:
    """Answer each request over HTTP/2 with the frames that a function gives for its stream."""

    def say(connection: socket.socket) -> None:
        connection.sendall(frame(SETTINGS, 0, 0))
        came = connection.makefile("rb")
        if came.read(len(PREFACE)) != PREFACE:  # it is asked by another one
            return
        while head := came.read(9):
            length, kind, flags, stream = struct.unpack(">xIBBI", b"\0\0" + head)
            came.read(length)
            if kind == SETTINGS and not flags:
                connection.sendall(frame(SETTINGS, ACK, 0))
            if kind == HEADERS:
                connection.sendall(answer(stream))

    return say


def resetting(code: int) -> Manners:
    """Reset the stream of each request over HTTP/2, as gRPC servers do with a GET."""
    return over_http2(lambda stream: frame(RST_STREAM, 0, stream, struct.pack(">I", code)))


def page(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Give a response of HTTP/1.1."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


HELLO = page(b"hello")
