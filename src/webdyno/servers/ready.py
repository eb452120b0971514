"""Waits until a server that was started answers, and says when it won't.

How long it has: `READY_WITHIN_S` of `core/service.py`, unless its own `ready_within_s` says
otherwise. The way to servers elsewhere is timed here as well.
"""

import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple, get_args
from urllib.parse import quote

from webdyno.core.load import SECURE, HttpProtocol, Load
from webdyno.core.service import BAD_REQUEST, READY_WITHIN_S
from webdyno.load.asking import Conversation, NoResponse
from webdyno.load.interface import ServerResponse
from webdyno.servers.service_graph import NewSocket, tcp

POLL_S = 0.005
LOOK_S = 0.1
"""While nobody listens, it is seen so often whether the server is alive."""
SAME_WRONG_RESPONSE_FOR_S = 1.0
RESPONSE_WITHIN_S = 5.0
ENDS_WITHIN_S = 10.0
"""A response that has begun and isn't complete after this time counts as endless."""
ONCE_MORE_WITHIN_S = 1.5
"""Time-out of the last questions to a server that gave no response while it should get ready."""
LAST_QUESTIONS_S = 2 * ONCE_MORE_WITHIN_S
"""A server that listens and says nothing is given up so long before the deadline, unless its
`ready_within_s` is given: the rest is needed to find out what it might speak instead."""
ELSEWHERE_AFTER_S = 1.0
"""Interval at which it is checked whether it listens at another address."""
_SERVING = b"\0\0\0\0\2\x08\1"
"""A `HealthCheckResponse`, with the five bytes before it."""
_EMPTY = b"\0\0\0\0\0"
_OF_CALLS: Mapping[HttpProtocol, HttpProtocol] = {"http": "h2c", "https": "h2"}
PROTOCOLS: tuple[HttpProtocol, ...] = get_args(HttpProtocol)
ROUND_TRIPS = 11


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    host: str
    port: int
    socket: Path | None
    """Path of the Unix socket if it listens on one instead."""
    uid: int
    """The user who has to be behind that socket."""
    protocol: HttpProtocol = "http"
    """What an HTTP server speaks there: http, https, h2, h2c or h3."""
    asked_host: str = ""
    """The host that clients ask for; empty where that is the address."""

    @property
    def text(self) -> str:
        return str(self.socket or self._host_and_port)

    @property
    def headers(self) -> dict[str, str]:
        """What a request says of whom it asks."""
        return {"Host": self.asked_host} if self.asked_host else {}

    @property
    def netloc(self) -> str:
        """As it stands in a URL: a socket's path is percent-encoded, behind whose it has to be."""
        if self.socket is None:
            return self._host_and_port
        return f"{self.uid}@{quote(str(self.socket), safe='')}"

    @property
    def url(self) -> str:
        """Where clients find an HTTP server, such as `http://127.0.0.1:8080`."""
        scheme = "https" if self.protocol in SECURE else "http"
        return f"{scheme}{'+unix' if self.socket else ''}://{self.netloc}"

    @property
    def _host_and_port(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def wait_for_listener(
    address: Address,
    check_alive: Callable[[], None],
    is_own: Callable[[], bool],
    new_socket: NewSocket = socket.socket,
    within_s: float = READY_WITHIN_S,
) -> bool:
    """Wait until our server accepts a connection; False when that doesn't happen in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        check_alive()
        with suppress(OSError):
            connect(address, new_socket).close()
            if is_own():
                return True
        time.sleep(POLL_S)
    return False


class FirstResponse(NamedTuple):
    """What a server answered when it had started."""

    at_s: float
    """The moment, by time.monotonic()."""
    status: int | None = None
    """None where it ends each connection without a response."""
    body: bytes = b""
    is_right: bool = False
    unfinished: str = ""
    """How much came in which time of a response that doesn't end."""
    is_reset: bool = False
    """Whether it reset the request's stream, over HTTP/2: it is up, but serves other requests."""
    unread: str = ""
    """Why an answer can't be read that came instead of a response."""

    def says_the_same_as(self, other: "FirstResponse") -> bool:
        """Whether they are the same but for the moment."""
        return self == other._replace(at_s=self.at_s)


@dataclass(frozen=True)
class FirstRequest:
    """What shows whether a server is ready: a GET, mostly."""

    path: str
    is_right: Callable[[int, bytes], bool]
    """Whether a response, by status and body, is the expected one."""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_patient: bool = False
    """Whether wrong responses are waited out."""
    checks_certificate: bool = False
    """Whether nothing is said to a server whose certificate isn't valid."""
    is_call: bool = False
    """Whether it isn't a GET, but a call of gRPC with an empty message."""

    def is_answered_by(self, response: FirstResponse) -> bool:
        """Whether it is the expected one, or shows that the server is up for other requests."""
        if response.is_reset and not self.is_patient:
            return True
        return response.status is not None and self.is_right(response.status, response.body)


def asks_health(*, checks_certificate: bool = False) -> FirstRequest:
    """Return what asks a server's health by gRPC, and waits until it is SERVING."""
    return FirstRequest(
        "/grpc.health.v1.Health/Check",
        lambda _, body: body == _SERVING,
        is_patient=True,
        checks_certificate=checks_certificate,
        is_call=True,
    )


@dataclass(frozen=True)
class AwaitedServer:
    """A server that is waited for."""

    address: Address
    check_alive: Callable[[], None]
    """Raises when it has ended."""
    is_own: Callable[[], bool]
    """Whether our server has the port: somebody else's may have it."""
    is_elsewhere: Callable[[], bool]
    """Whether it listens, and surely at another address than this."""
    client_entry: Sequence[str] = ()
    """Words before a command that let it run where clients are."""
    within_s: float = READY_WITHIN_S
    asks_till_the_end: bool = False
    """Whether all of that is spent on the request; else some of it is kept for finding out what it
    might speak instead."""


class UntrustedServer(Exception):  # noqa: N818 (it becomes why a stack can't be measured)
    """The server's certificate isn't valid, so that nothing was said to it."""


def wait_for_response(server: AwaitedServer, request: FirstRequest) -> FirstResponse | None:
    """Wait until a request is answered as expected; None when there is no response in time.

    A server that gives the same wrong response for a second, or ends each connection without one,
    has started too: what is wrong with the response is for others to say. Not so where the request
    is patient. One that listens at another address isn't waited for any longer, nor one whose
    answer doesn't end. Raise UntrustedServer for a certificate that isn't valid.
    """
    with _conversation(server.address, request, server.client_entry) as conversation:
        return _wait_for_response(server, request, conversation)


def _wait_for_response(
    server: AwaitedServer, request: FirstRequest, conversation: Conversation
) -> FirstResponse | None:
    deadline = time.monotonic() + server.within_s
    given_up_at = deadline if server.asks_till_the_end else deadline - LAST_QUESTIONS_S
    look_at = time.monotonic() + ELSEWHERE_AFTER_S
    wrong: FirstResponse | None = None
    with_status: FirstResponse | None = None
    # Headers may hold secrets, and another user's program may have the port.
    asked = replace(request, headers={}) if request.headers else request
    while time.monotonic() < deadline:
        server.check_alive()
        response = _next_response(server, asked, conversation, given_up_at)
        if response is not None and asked is not request:
            asked = request
            continue
        if response is None:
            wrong = None
            if time.monotonic() >= given_up_at and server.is_own():
                break
            if time.monotonic() > look_at:
                if server.is_elsewhere():
                    return None
                look_at = time.monotonic() + ELSEWHERE_AFTER_S
        elif response.unfinished:
            return response
        elif request.is_answered_by(response):
            return response._replace(is_right=True)
        else:
            with_status = with_status if response.status is None else response
            if wrong is None or not response.says_the_same_as(wrong):
                wrong = response
            elif not request.is_patient and response.at_s - wrong.at_s > SAME_WRONG_RESPONSE_FOR_S:
                return response
        time.sleep(POLL_S)
    seen = with_status or wrong
    return seen and seen._replace(is_reset=False)


def _next_response(
    server: AwaitedServer, request: FirstRequest, conversation: Conversation, given_up_at: float
) -> FirstResponse | None:
    """Ask once, and once more where the response didn't end; None without one of our server's."""
    left_s = given_up_at - time.monotonic()
    asks_for_s = min(RESPONSE_WITHIN_S, left_s) if left_s > 0 else ONCE_MORE_WITHIN_S
    response = _ask(conversation, server.address, request, asks_for_s)
    if response is None or not server.is_own():
        return None
    if response.unfinished:
        return _ask(conversation, server.address, request, ENDS_WITHIN_S)
    return response


def spoken_instead(
    address: Address,
    request: FirstRequest,
    is_own: Callable[[HttpProtocol], bool],
    client_entry: Sequence[str] = (),
) -> str | None:
    """Return what an HTTP server speaks, if that isn't what it was to speak; None if nothing.

    `is_own`: whether our server is what is asked by a protocol: HTTP/3's port isn't TCP's.
    """
    others = [other for other in PROTOCOLS if other != address.protocol and is_own(other)]
    if not others:
        return None
    anyone = replace(request, headers={}, checks_certificate=False, is_call=False)

    def ask(protocol: HttpProtocol) -> FirstResponse | None:
        other = replace(address, protocol=protocol)
        with _conversation(other, anyone, client_entry) as conversation:
            return _ask(conversation, other, anyone, ONCE_MORE_WITHIN_S)

    with ThreadPoolExecutor(len(others)) as pool:
        responses = list(pool.map(ask, others))
    for protocol, response in zip(others, responses, strict=True):
        if response and (response.is_reset or response.status not in {None, BAD_REQUEST}):
            return protocol
    return None


def why_silent(address: Address, request: FirstRequest, client_entry: Sequence[str] = ()) -> str:
    """Ask once more; return what is wrong with the response, nothing where nobody listens."""
    with _conversation(address, request, client_entry) as conversation:
        try:
            _said(conversation, address, request, ONCE_MORE_WITHIN_S)
        except NoResponse as none:
            return "" if none.trouble == "connect" else str(none)
    return ""


def connect(
    address: Address, new_socket: NewSocket = socket.socket, within_s: float = RESPONSE_WITHIN_S
) -> socket.socket:
    """Connect to a service; raise OSError when it doesn't listen.

    A socket's path lies in a folder of the servers' user. Should he put a link there to a socket of
    somebody who listens to root, nothing is said to that one.
    """
    connection = socket.socket(socket.AF_UNIX) if address.socket else tcp(address.host, new_socket)
    connection.settimeout(within_s)
    try:
        connection.connect(str(address.socket) if address.socket else (address.host, address.port))
        if address.socket and _user_behind(connection) != address.uid:
            raise PermissionError(f"{address.socket} leads to another user's process")
    except OSError:
        connection.close()
        raise
    return connection


def _user_behind(connection: socket.socket) -> int:
    """The second of struct ucred's three numbers, unix(7)."""
    size = 3 * struct.calcsize("i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", credentials)[1])


def _conversation(
    address: Address, request: FirstRequest, client_entry: Sequence[str]
) -> Conversation:
    spoken = address.protocol
    if request.is_call:
        spoken = _OF_CALLS.get(spoken, spoken)
    load = Load(protocol=spoken, tls_verify=request.checks_certificate)
    return Conversation(address.url, load, client_entry)


def _ask(
    conversation: Conversation, address: Address, request: FirstRequest, within_s: float
) -> FirstResponse | None:
    """Return the response to a request; None where there is none that says anything."""
    try:
        said = _said(conversation, address, request, within_s)
    except NoResponse as none:
        if none.trouble == "untrusted":
            raise UntrustedServer(str(none)) from None
        if none.trouble == "reset":
            return FirstResponse(time.monotonic(), is_reset=True)
        if not (none.was_refused or none.what_came):
            return None
        unread = str(none) if none.trouble == "malformed" else ""
        return FirstResponse(time.monotonic(), unfinished=none.what_came, unread=unread)
    return FirstResponse(time.monotonic(), said.status, said.body)


def _said(
    conversation: Conversation, address: Address, request: FirstRequest, within_s: float
) -> ServerResponse:
    headers = {**address.headers, **request.headers}
    return conversation.ask(
        "POST" if request.is_call else "GET",
        request.path,
        headers,
        _EMPTY if request.is_call else None,
        is_call=request.is_call,
        within_s=within_s,
        accepts_within_s=LOOK_S,
    )


def measured_round_trip_s(address: Address) -> float:
    """Return how long connecting takes, the median of some; raise OSError where nobody listens."""
    took_s = list[float]()
    for _ in range(ROUND_TRIPS):
        began = time.perf_counter()
        connect(address).close()
        took_s.append(time.perf_counter() - began)
    return median(took_s)
