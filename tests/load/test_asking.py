"""What a server may send instead of a response: none of it takes memory or time without end."""

import itertools
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from manners import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    HELLO,
    INTERNAL_ERROR,
    REFUSED_STREAM,
    STATUS_103,
    STATUS_200,
    Manners,
    frame,
    over_http2,
    resetting,
    saying,
    serving,
)
from webdyno.core.load import HttpProtocol, Load
from webdyno.load.asking import Conversation, NoResponse
from webdyno.load.interface import Expectation, Request, ServerResponse
from webdyno.servers.service_graph import free_port

WITHIN_S = 5.0


def talk(port: int, within_s: float = WITHIN_S, protocol: HttpProtocol = "http") -> Conversation:
    scheme = "https" if protocol in {"https", "h2"} else "http"
    return Conversation(f"{scheme}://127.0.0.1:{port}", Load(protocol=protocol, timeout_s=within_s))


def ask(
    manners: Manners, protocol: HttpProtocol = "http", within_s: float = WITHIN_S
) -> ServerResponse:
    with serving(manners) as port, talk(port, within_s, protocol) as conversation:
        return conversation.ask("GET", "/", {})


def no_response(
    manners: Manners, protocol: HttpProtocol = "http", within_s: float = WITHIN_S
) -> NoResponse:
    with pytest.raises(NoResponse) as caught:
        ask(manners, protocol, within_s)
    return caught.value


def reason(manners: Manners, within_s: float = WITHIN_S) -> str:
    return str(no_response(manners, within_s=within_s))


def test_a_body_that_is_too_long_is_no_answer() -> None:
    def endless(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n")
        piece = bytes(1 << 20)
        while True:
            connection.sendall(piece)

    assert "more than 256 MiB" in reason(endless, within_s=60.0)


@pytest.mark.parametrize(
    "head",
    ["Content-Length: 99999999999", "Content-Length: 7"],
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


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "]
)
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
    with serving(saying(before + HELLO)) as port, talk(port) as conversation:
        request = Request("/", Expectation(200))
        said = list(conversation.ask_all([request] * 2))
    assert [(it.status, it.body) for it in said] == [(200, b"hello")] * 2


def test_requests_share_a_connection_as_far_as_it_stays_open() -> None:
    opened = []

    def say(connection: socket.socket) -> None:
        opened.append(connection)
        saying(HELLO)(connection)

    with serving(say) as port:
        for keepalive, connections in (("always", 1), ("never", 3), (2, 2)):
            opened.clear()
            load = Load.model_validate({"keepalive": keepalive})
            with Conversation(f"http://127.0.0.1:{port}", load) as conversation:
                request = Request("/", Expectation(200))
                assert [said.status for said in conversation.ask_all([request] * 3)] == [200] * 3
            assert len(opened) == connections


def test_a_response_is_given_whole() -> None:
    body = bytes(range(256)) * 40_000
    head = f"HTTP/1.1 203 Fine\r\nX-A: b\r\nSet-Cookie: a=b\r\nContent-Length: {len(body)}\r\n\r\n"
    said = ask(saying(head.encode() + body))
    assert (said.status, said.version, said.body) == (203, "HTTP/1.1", body)
    assert said.headers == [("X-A", "b"), ("Set-Cookie", "a=b"), ("Content-Length", str(len(body)))]
    assert said.head_bytes == len(head)


def test_a_kept_connection_that_ends_without_a_response_is_no_response() -> None:
    def once(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(HELLO)
        connection.recv(65_536)

    with serving(once) as port, talk(port) as conversation:
        request = Request("/", Expectation(200))
        said = list(conversation.ask_all([request] * 3))
    assert [it.trouble for it in said] == [None, "closed", None]


def test_informational_answers_of_http_2_are_not_the_answer() -> None:
    def answer(stream: int) -> bytes:
        return (
            frame(HEADERS, END_HEADERS, stream, STATUS_103)
            + frame(HEADERS, END_HEADERS, stream, STATUS_200)
            + frame(DATA, END_STREAM, stream, b"hello")
        )

    said = ask(over_http2(answer), "h2c")
    assert (said.status, said.version, said.headers, said.body) == (200, "HTTP/2", [], b"hello")
    assert said.head_bytes == len(":status: 200\r\n\r\n")


def test_a_change_of_protocol_is_no_answer() -> None:
    assert "status 101" in reason(saying(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"))


@pytest.mark.parametrize("protocol", ["http", "https", "h2c"])
def test_a_connection_closed_without_an_answer_is_known_as_such(protocol: HttpProtocol) -> None:
    def close(connection: socket.socket) -> None:
        connection.recv(65_536)

    assert no_response(close, protocol).was_refused


def test_a_stream_that_is_reset_is_known_as_such_unless_it_was_refused() -> None:
    reset = no_response(resetting(INTERNAL_ERROR), "h2c")
    assert reset.trouble == "reset"
    assert "INTERNAL_ERROR" in str(reset)
    refused = no_response(resetting(REFUSED_STREAM), "h2c")
    assert (refused.trouble, refused.was_refused) == ("closed", True)


def test_another_protocol_is_named() -> None:
    assert "the server speaks HTTP/2 there" in reason(resetting(INTERNAL_ERROR))
    assert r"read: SSH-2.0-x\r\n" in reason(saying(b"SSH-2.0-x\r\n"))
    assert no_response(saying(HELLO), "h2c").trouble == "malformed"


def test_nobody_listening_has_refused_no_connection() -> None:
    with pytest.raises(NoResponse, match="refused") as caught, talk(9) as conversation:
        conversation.ask("GET", "/", {})
    assert (caught.value.trouble, caught.value.was_refused) == ("connect", False)


def test_a_server_that_starts_is_asked_once_when_it_accepts() -> None:
    opened = []

    def say(connection: socket.socket) -> None:
        opened.append(connection)
        saying(HELLO)(connection)

    port = free_port()
    with talk(port) as conversation, ThreadPoolExecutor() as threads:
        asked = threads.submit(conversation.ask, "GET", "/", {}, accepts_within_s=60.0)
        time.sleep(0.2)
        assert not asked.done()
        with serving(say, ("127.0.0.1", port)):
            assert asked.result().status == 200
    assert len(opened) == 1


def test_a_server_that_does_not_take_the_body_is_named() -> None:
    def cheat(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(HELLO)

    with (
        serving(cheat) as port,
        talk(port) as conversation,
        pytest.raises(NoResponse, match="body"),
    ):
        conversation.ask("POST", "/upload", {}, bytes(64 << 20))


def test_an_address_of_ipv6_is_asked() -> None:
    try:
        with (
            serving(saying(HELLO), ("::1", 0)) as port,
            Conversation(f"http://[::1]:{port}", Load()) as conversation,
        ):
            assert conversation.ask("GET", "/", {}).status == 200
    except OSError:
        pytest.skip("no IPv6 here")


def test_a_foreign_status_line_is_kept_short() -> None:
    assert len(reason(saying(b"x" * 5000 + b"\r\n\r\n"))) < 300
