"""What a server may send instead of a response: none of it takes memory or time without end."""

import itertools
import socket
import time

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived

from manners import HELLO, Manners, resetting, saying, serving
from webdyno.stack import sockets
from webdyno.stack.speaking import Conversation, NoResponse, ResetStream, ServerResponse

WITHIN_S = 5.0


def ask(manners: Manners, protocol: str = "http", within_s: float = WITHIN_S) -> ServerResponse:
    with (
        serving(manners) as port,
        Conversation(f"127.0.0.1:{port}", protocol, within_s) as conversation,
    ):
        return conversation.ask("GET", "/", {})


def reason(manners: Manners, protocol: str = "http", within_s: float = WITHIN_S) -> str:
    with pytest.raises(NoResponse) as caught:
        ask(manners, protocol, within_s)
    return str(caught.value)


def test_a_body_that_is_too_long_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "MOST_RESPONSE_BYTES", 1 << 20)
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n" + bytes(2 << 20)
    assert "more than 1 MiB" in reason(saying(endless))


@pytest.mark.parametrize(
    "head",
    ["Content-Length: 99999999999999999999999999", "Content-Length: 7"],
)
def test_a_body_shorter_than_its_length_is_no_answer(head: str) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\nhello".encode())

    assert "in the middle of its response" in reason(say)


@pytest.mark.parametrize("length", ["fffffffffffffffffffff", "-1", "-5", "x", "9" * 5000])
def test_the_length_of_a_chunk_may_be_any_number(length: str) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(65_536)
        head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(f"{head}{length}\r\nhello".encode())

    assert reason(say)


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1"])
def test_an_answer_that_drips_is_not_waited_for(begin: bytes) -> None:
    def drip(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(begin)
        while True:  # until the other side has gone
            connection.sendall(b"1")
            time.sleep(0.02)

    assert "complete within 0.3 s" in reason(drip, within_s=0.3)


def test_events_without_an_end_are_not_waited_for() -> None:
    def events(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in itertools.count():
            connection.sendall(b"data: %d\n\n" % number)

    assert reason(events, within_s=0.3)


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    ],
)
def test_informational_answers_are_not_the_answer(before: bytes) -> None:
    with (
        serving(saying(before + HELLO)) as port,
        Conversation(f"127.0.0.1:{port}", "http", WITHIN_S) as conversation,
    ):
        said = [conversation.ask("GET", "/", {}) for _ in range(2)]
    assert [(it.status, it.body) for it in said] == [(200, b"hello")] * 2


def test_informational_answers_of_http_2_are_not_the_answer() -> None:
    def say(connection: socket.socket) -> None:
        http2 = H2Connection(H2Configuration(client_side=False))
        http2.initiate_connection()
        while came := connection.recv(65_536):
            for event in http2.receive_data(came):
                if isinstance(event, RequestReceived) and event.stream_id:
                    http2.send_headers(event.stream_id, [(":status", "103"), ("link", "</a>")])
                    http2.send_headers(event.stream_id, [(":status", "200")])
                    http2.send_data(event.stream_id, b"hello", end_stream=True)
            connection.sendall(http2.data_to_send())

    said = ask(say, "h2c")
    assert (said.status, said.body) == (200, b"hello")


def test_a_change_of_protocol_is_no_answer() -> None:
    assert "another protocol (101)" in reason(saying(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"))


@pytest.mark.parametrize("protocol", ["http", "https", "h2c"])
def test_a_connection_closed_without_an_answer_is_known_as_such(protocol: str) -> None:
    def close(connection: socket.socket) -> None:
        connection.recv(65_536)

    with pytest.raises(NoResponse) as caught:
        ask(close, protocol)
    assert caught.value.refused


def test_a_stream_that_is_reset_is_known_as_such_unless_it_was_refused() -> None:
    with pytest.raises(ResetStream, match="INTERNAL_ERROR"):
        ask(resetting(ErrorCodes.INTERNAL_ERROR), "h2c")
    with pytest.raises(NoResponse) as caught:
        ask(resetting(ErrorCodes.REFUSED_STREAM), "h2c")
    assert not isinstance(caught.value, ResetStream)
    assert caught.value.refused


def test_another_protocol_is_named() -> None:
    assert reason(resetting(ErrorCodes.INTERNAL_ERROR)) == "it speaks HTTP/2 there, not HTTP/1.1"
    assert reason(saying(b"SSH-2.0-x\r\n")) == "what it says isn't HTTP/1.1: 'SSH-2.0-x\\r\\n'"


def test_nobody_listening_has_refused_no_connection() -> None:
    with pytest.raises(NoResponse) as caught, Conversation("127.0.0.1:9", "http", 1.0) as talk:
        talk.ask("GET", "/", {})
    assert not caught.value.refused


def test_a_server_that_does_not_take_the_body_is_named() -> None:
    def cheat(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(HELLO)

    with (
        serving(cheat) as port,
        Conversation(f"127.0.0.1:{port}", "http", WITHIN_S) as conversation,
        pytest.raises(NoResponse, match="body"),
    ):
        conversation.ask("POST", "/upload", {}, bytes(64 << 20))


def test_an_address_of_ipv6_is_asked() -> None:
    try:
        serving_there = serving(saying(HELLO), ("::1", 0))
        with (
            serving_there as port,
            Conversation(
                f"[::1]:{port}", "http", WITHIN_S, lambda: socket.socket(socket.AF_INET6)
            ) as talk,
        ):
            assert talk.ask("GET", "/", {}).status == 200
    except OSError:
        pytest.skip("no IPv6 here")


def test_a_foreign_status_line_is_kept_short() -> None:
    assert len(reason(saying(b"x" * 5000 + b"\r\n\r\n"))) < 300
