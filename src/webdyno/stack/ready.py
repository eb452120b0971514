"""Waits until servers answer."""

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from webdyno.model.service import BAD_REQUEST
from webdyno.stack.ports import NewSocket
from webdyno.stack.speaking import Conversation, NoAnswer

POLL_S = 0.005
START_WITHIN_S = 20.0
SAME_WRONG_ANSWER_FOR_S = 1.0
ANSWER_WITHIN_S = 5.0
PROTOCOLS = ("http", "https", "h2", "h2c")


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    host: str
    port: int
    socket: Path | None
    """Path of the Unix socket if it listens on one instead."""
    uid: int
    """The user who has to be behind that socket."""
    protocol: str = "http"
    """What an HTTP server speaks there: http, https, h2 or h2c."""
    asked_host: str = ""
    """The host that clients ask for; empty where that is the address."""

    @property
    def text(self) -> str:
        """As people write it."""
        return str(self.socket or f"{self.host}:{self.port}")

    @property
    def headers(self) -> dict[str, str]:
        """What a request says of whom it asks."""
        return {"Host": self.asked_host} if self.asked_host else {}

    @property
    def netloc(self) -> str:
        """As it stands in a URL: a socket's path is percent-encoded."""
        return quote(str(self.socket), safe="") if self.socket else f"{self.host}:{self.port}"


def wait_for_listener(
    address: Address,
    check_alive: Callable[[], None],
    is_own: Callable[[], bool],
    new_socket: NewSocket = socket.socket,
    within_s: float | None = None,
) -> bool:
    """Wait until a connection is accepted; False when that doesn't happen in time.

    `is_own` tells whether it was by our server: somebody else's may have the port.
    """
    deadline = time.monotonic() + (within_s or START_WITHIN_S)
    while time.monotonic() < deadline:
        check_alive()
        if _accepts(address, new_socket) and is_own():
            return True
        time.sleep(POLL_S)
    return False


class FirstAnswer(NamedTuple):
    """What a server answered when it had started."""

    at_s: float
    """The moment, by time.monotonic()."""
    status: int
    is_right: bool


def wait_for_answer(
    address: Address,
    path: str,
    is_right: Callable[[int, bytes], bool],
    check_alive: Callable[[], None],
    is_own: Callable[[], bool],
    new_socket: NewSocket = socket.socket,
    within_s: float | None = None,
    *,
    is_patient: bool = False,
) -> FirstAnswer | None:
    """Wait until a path is answered as expected; None when there is no answer in time.

    `is_own` tells whether our server answers: somebody else's may have the port. A server that
    gives the same wrong answer for a second has started too: what is wrong with the answer is for
    the fairness certificate to say. Not so where `is_patient`: wrong answers are waited out then.
    """
    deadline = time.monotonic() + (within_s or START_WITHIN_S)
    wrong: tuple[int, bytes] | None = None
    wrong_since = answered_at = 0.0
    while time.monotonic() < deadline:
        check_alive()
        answer, answered_at = _ask(address, path, new_socket), time.monotonic()
        if answer is not None and not is_own():
            answer = None
        if answer is not None and is_right(*answer):
            return FirstAnswer(answered_at, answer[0], is_right=True)
        if answer is None or answer != wrong:
            wrong, wrong_since = answer, answered_at
        elif not is_patient and answered_at - wrong_since > SAME_WRONG_ANSWER_FOR_S:
            return FirstAnswer(answered_at, answer[0], is_right=False)
        time.sleep(POLL_S)
    return FirstAnswer(answered_at, wrong[0], is_right=False) if wrong else None


def spoken_instead(
    address: Address, path: str, new_socket: NewSocket = socket.socket
) -> str | None:
    """Give what an HTTP server speaks, if that isn't what it was to speak; None if nothing."""
    for protocol in PROTOCOLS:
        other = replace(address, protocol=protocol)
        answer = _ask(other, path, new_socket) if protocol != address.protocol else None
        if answer is not None and answer[0] != BAD_REQUEST:
            return protocol
    return None


def connect(
    address: Address, new_socket: NewSocket = socket.socket, within_s: float = ANSWER_WITHIN_S
) -> socket.socket:
    """Connect to a service; raise OSError when it doesn't listen.

    A socket's path lies in a folder of the servers' user. Should he put a link there to a socket of
    somebody who listens to root, nothing is said to that one.
    """
    connection = socket.socket(socket.AF_UNIX) if address.socket else new_socket()
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
    """Give the user who listens: the second of struct ucred's three numbers, unix(7)."""
    size = 3 * struct.calcsize("i")
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", found)[1])


def _accepts(address: Address, new_socket: NewSocket) -> bool:
    try:
        connect(address, new_socket).close()
    except OSError:
        return False
    return True


def _ask(address: Address, path: str, new_socket: NewSocket) -> tuple[int, bytes] | None:
    if address.socket:
        try:
            connect(address).close()  # whoever is behind it is who should be
        except OSError:
            return None
    with Conversation(
        address.netloc, address.protocol, ANSWER_WITHIN_S, new_socket
    ) as conversation:
        try:
            said = conversation.ask("GET", path, address.headers)
        except NoAnswer:
            return None
        return said.status, said.body
