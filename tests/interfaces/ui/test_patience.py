"""Connections whose request doesn't come to its end are closed."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from webdyno.interfaces.ui import guard

WHOLE = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that waits for a moment only."""
    monkeypatch.setattr(guard, "REQUEST_WITHIN_S", 0.2)
    monkeypatch.setattr(guard.ImpatientProtocol, "_awaited", {})

    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await request.body())

    app = Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])
    config = uvicorn.Config(app, log_level="error", http=guard.ImpatientProtocol, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf",
    ],
)
def test_half_a_request_is_not_waited_for(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        assert received(connection) == b""


@pytest.mark.timeout(30)
def test_half_a_request_after_a_whole_one_is_not_waited_for(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(WHOLE + b"GET / HTT")
        assert received(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("sent", [b"", b"GET / HTT", WHOLE])
def test_of_many_connections_the_first_is_given_up(
    port: int, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(guard, "REQUEST_WITHIN_S", 60.0)
    monkeypatch.setattr(guard, "MOST_AWAITED", 3)
    with ExitStack() as held:
        connections = []
        for _ in range(5):
            connection = socket.create_connection(("127.0.0.1", port))
            connections.append(held.enter_context(connection))
            connection.sendall(sent)
            if sent == WHOLE:
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert received(connections[0]) == received(connections[1]) == b""
        last = connections[-1]
        last.sendall(WHOLE.removeprefix(sent) or WHOLE)
        assert last.recv(4096).startswith(b"HTTP/1.1 200")


def received(connection: socket.socket) -> bytes:
    """Read until the server closes the connection, in order or not."""
    whole = b""
    try:
        while part := connection.recv(4096):
            whole += part
    except ConnectionResetError:
        pass
    return whole
