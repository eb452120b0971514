"""Waits until servers answer."""

import http.client
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from webdyno.model.site import Page
from webdyno.stack.ports import HOST

POLL_S = 0.005
START_WITHIN_S = 20.0
SAME_WRONG_ANSWER_FOR_S = 1.0
ANSWER_WITHIN_S = 5.0


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    host: str
    port: int
    socket: Path | None
    """Path of the Unix socket if it listens on one instead."""


def wait_for_listener(address: Address, check_alive: Callable[[], None]) -> bool:
    """Wait until a connection is accepted; False when that doesn't happen in time."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        check_alive()
        if _accepts(address):
            return True
        time.sleep(POLL_S)
    return False


def wait_for_answer(port: int, path: str, page: Page, check_alive: Callable[[], None]) -> bool:
    """Wait until a path is answered as expected; False when there is no answer in time.

    A server that gives the same wrong answer for a second has started too: what is wrong with
    the answer is for the fairness certificate to say.
    """
    deadline = time.monotonic() + START_WITHIN_S
    wrong: tuple[int, bytes] | None = None
    wrong_since = 0.0
    while time.monotonic() < deadline:
        check_alive()
        answer = _ask(port, path)
        if answer is not None and page.matches(*answer):
            return True
        if answer is None or answer != wrong:
            wrong, wrong_since = answer, time.monotonic()
        elif time.monotonic() - wrong_since > SAME_WRONG_ANSWER_FOR_S:
            return True
        time.sleep(POLL_S)
    return False


def connect(address: Address) -> socket.socket:
    """Connect to a service; raise OSError when it doesn't listen."""
    connection = socket.socket(socket.AF_UNIX if address.socket else socket.AF_INET)
    connection.settimeout(ANSWER_WITHIN_S)
    try:
        connection.connect(str(address.socket) if address.socket else (address.host, address.port))
    except OSError:
        connection.close()
        raise
    return connection


def _accepts(address: Address) -> bool:
    try:
        connect(address).close()
    except OSError:
        return False
    return True


def _ask(port: int, path: str) -> tuple[int, bytes] | None:
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_WITHIN_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
