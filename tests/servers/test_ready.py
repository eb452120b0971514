"""When a server is ready, and how soon it is known that it won't be."""

import os
import re
import socket
import time
from pathlib import Path

import pytest

from manners import (
    HELLO,
    INTERNAL_ERROR,
    REFUSED_STREAM,
    Manners,
    page,
    resetting,
    saying,
    serving,
)
from webdyno.core.load import HttpProtocol
from webdyno.core.service import READY_WITHIN_S
from webdyno.servers.ready import (
    Address,
    AwaitedServer,
    FirstRequest,
    FirstResponse,
    spoken_instead,
    wait_for_response,
    why_silent,
)

LONG_S = 60.0
"""Longer than any of these tests may take."""


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("reference/catalog.md", r"`ready_within_s`: how long its start may take \((\d+)\)"),
        (
            "reference/cli.md",
            r"--ready-within DURATION +How long that may take \[default: (\d+)s\]",
        ),
        ("schema/webdyno.schema.json", r"has so long to become ready; (\d+) s unless given"),
    ],
)
def test_the_usual_time_is_the_same_wherever_it_is_said(page: str, said: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    assert set(re.findall(said, text)) == {f"{READY_WITHIN_S:g}"}


def closing(connection: socket.socket) -> None:
    """Take a request, and end the connection."""
    connection.recv(65_536)


def wait(
    manners: Manners,
    *,
    is_elsewhere: bool = False,
    is_own: bool = True,
    is_patient: bool = False,
    headers: dict[str, str] | None = None,
    within_s: float | None = LONG_S,
    protocol: HttpProtocol = "http",
) -> FirstResponse | None:
    with serving(manners) as port:
        server = AwaitedServer(
            Address("127.0.0.1", port, None, 0, protocol),
            check_alive=lambda: None,
            is_own=lambda: is_own,
            is_elsewhere=lambda: is_elsewhere,
            within_s=within_s or READY_WITHIN_S,
            asks_till_the_end=within_s is not None,
        )
        request = FirstRequest(
            "/items", lambda status, _: status == 200, headers or {}, is_patient=is_patient
        )
        return wait_for_response(server, request)


def test_the_request_that_will_be_measured_is_sent() -> None:
    asked = []

    def say(connection: socket.socket) -> None:
        asked.append(connection.recv(65_536).decode())
        connection.sendall(HELLO)

    found = wait(say, headers={"Cookie": "a=b"})
    assert found is not None
    assert found.is_right
    assert [each.partition(" HTTP")[0] for each in asked] == ["GET /items"] * 2
    assert ["Cookie: a=b" in each for each in asked] == [False, True]  # once it is known to be ours


def test_a_server_that_only_closes_is_not_waited_for_until_the_end() -> None:
    found = wait(closing)
    assert found is not None
    assert (found.status, found.is_right) == (None, False)


def test_a_server_that_resets_what_it_is_asked_over_http_2_is_up() -> None:
    found = wait(resetting(INTERNAL_ERROR), protocol="h2c")
    assert found is not None
    assert (found.status, found.is_right, found.is_reset) == (None, True, True)
    # Not where a path was named that is to show it, nor where nothing was looked at.
    patient = wait(resetting(INTERNAL_ERROR), protocol="h2c", is_patient=True, within_s=1.5)
    refusing = wait(resetting(REFUSED_STREAM), protocol="h2c")
    assert [found is not None and found.is_right for found in (patient, refusing)] == [False] * 2


def test_a_server_of_grpc_that_is_asked_in_http_1_is_known() -> None:
    with serving(resetting(INTERNAL_ERROR)) as port:
        address = Address("127.0.0.1", port, None, 0)
        assert spoken_instead(address, FirstRequest("/", lambda *_: True), lambda _: True) == "h2c"


def test_a_server_that_only_closes_is_waited_for_where_it_may_take_long() -> None:
    found = wait(closing, is_patient=True, within_s=1.5)
    assert found is not None
    assert found.status is None


def test_a_wrong_answer_given_long_enough_is_the_first_answer() -> None:
    found = wait(saying(page(b"no", "502 Bad Gateway")))
    assert found is not None
    assert (found.status, found.is_right) == (502, False)


def test_a_wrong_answer_is_known_though_the_last_request_had_none() -> None:
    responses = iter([page(b"no", "502 Bad Gateway")])

    def say(connection: socket.socket) -> None:
        connection.recv(65_536)
        if (response := next(responses, None)) is None:
            connection.recv(65_536)  # nothing until the client gives up
        else:
            connection.sendall(response)

    found = wait(say, is_patient=True, within_s=1.0)
    assert found is not None
    assert found.status == 502


def trickling(connection: socket.socket) -> None:
    """Answer with a byte at a time."""
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
    while True:
        connection.sendall(b"1")
        time.sleep(0.01)


def test_an_answer_without_an_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.servers.ready.RESPONSE_WITHIN_S", 0.2)
    monkeypatch.setattr("webdyno.servers.ready.ENDS_WITHIN_S", 0.4)
    found = wait(trickling)
    assert found is not None
    assert not found.is_right
    assert re.fullmatch(r"\d+ bytes after 0\.4\d* s", found.unfinished)


def test_an_answer_that_takes_longer_once_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.servers.ready.RESPONSE_WITHIN_S", 0.2)
    manners = iter([trickling])
    found = wait(lambda connection: next(manners, saying(HELLO))(connection))
    assert found is not None
    assert found.is_right


def test_a_server_that_listens_elsewhere_is_not_waited_for() -> None:
    assert wait(saying(HELLO), is_own=False, is_elsewhere=True) is None


def test_an_address_of_ipv6_is_written_in_brackets() -> None:
    assert Address("::1", 9100, None, 0).netloc == "[::1]:9100"
    assert Address("::1", 9100, None, 0).text == "[::1]:9100"


def test_why_there_is_no_answer_is_known_where_somebody_listens() -> None:
    request = FirstRequest("/", lambda *_: True)
    with serving(saying(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")) as port:
        why = why_silent(Address("127.0.0.1", port, None, 0), request)
    assert "status 101" in why
    assert why_silent(Address("127.0.0.1", 9, None, 0), request) == ""
    with serving(saying(HELLO)) as port:
        assert why_silent(Address("127.0.0.1", port, None, 0), request) == ""


def test_nothing_is_said_to_another_user_behind_a_socket(tmp_path: Path) -> None:
    """A link there may lead to one that does what we say, such as Docker's."""
    request = FirstRequest("/", lambda *_: True)
    for uid, begins in ((os.geteuid(), b"GET /"), (os.geteuid() + 1, b"")):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path := tmp_path / str(uid)))
            server.listen()
            why_silent(Address("", 0, path, uid), request)
            connection, _ = server.accept()
            with connection:
                assert connection.recv(5) == begins


def test_nothing_is_said_to_another_program_that_has_the_port() -> None:
    """Another user could take it while the server starts: command lines show which it will be."""
    heard: list[bytes] = []

    def hears(connection: socket.socket) -> None:
        heard.append(connection.recv(65_536))
        connection.sendall(HELLO)

    for is_own in (False, True):
        wait(hears, is_own=is_own, headers={"Authorization": "s3cret"}, within_s=0.3)
        assert any(b"s3cret" in each for each in heard) is is_own


def silent(connection: socket.socket) -> None:
    """Take requests, and answer none."""
    while connection.recv(65_536):
        pass


def test_a_server_that_says_nothing_is_refused_with_all_questions_in_the_usual_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr("webdyno.servers.ready.time", clock)
    asked_s: list[float] = []

    def ask(*asked: object) -> None:
        asked_s.append(float(str(asked[-1])))
        clock.sleep(asked_s[-1])

    monkeypatch.setattr("webdyno.servers.ready._ask", ask)
    for is_own, within_s, end_s in ((True, None, 17.0), (False, None, 20.0), (True, 60.0, 60.0)):
        clock.now_s = 0.0
        found = wait(silent, is_own=is_own, within_s=within_s)
        assert found is None
        assert end_s - 0.1 < clock.now_s < end_s + 0.1
    assert max(asked_s) == 5.0


def test_what_came_of_no_answer_is_reported() -> None:
    with serving(silent) as port:
        why = why_silent(Address("127.0.0.1", port, None, 0), FirstRequest("/", lambda *_: True))
    assert why == "no byte of a response came within 1.5 s"


class Clock:
    """Time that passes only where it is waited for."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """Give the time."""
        return self.now_s

    def sleep(self, for_s: float) -> None:
        """Let time pass."""
        self.now_s += for_s


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (page(b"x", "200 OK", "X: " + "y" * 300_000), "head is longer"),
        (b"-ERR unknown command 'GET'\r\n", "ERR"),
    ],
)
def test_why_an_answer_can_not_be_read_is_known(answer: bytes, why: str) -> None:
    found = wait(saying(answer))
    assert found is not None
    assert found.status is None
    assert why in found.unread


def test_many_headers_are_read() -> None:
    cookies = (f"Set-Cookie: a{number}=b" for number in range(301))
    found = wait(saying(page(b"x", "200 OK", *cookies)))
    assert found is not None
    assert found.is_right
