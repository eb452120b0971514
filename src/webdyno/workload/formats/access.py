"""A request as a log has it, and what the readers of all formats share."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

FORWARDED, AT_EDGE, CASE_BLIND = "client by X-Forwarded-For", "answered at the edge", "of IIS"
"""Remarks on a request."""
QUOTED = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_NOBODY = (b"", b"-")
_PORT = re.compile(rb"\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+")


class Access(NamedTuple):
    """A request as a log has it."""

    time_s: float
    """Since 1970, in UTC."""
    address: bytes
    """Who asked; empty where the log doesn't tell. Hashed as soon as it is read, as the agent."""
    agent: bytes
    method: bytes
    target: bytes
    """Path and query, or all of an address."""
    status: int
    body_bytes: int
    first_on_connection: bool | None = None
    """None where the log doesn't tell."""
    took_s: float | None = None
    """Until it was answered; None where the log doesn't tell."""
    remarks: Sequence[str] = ()
    body: bytes = b""
    """What it sent: only HAR files have it."""
    content_type: str = ""
    """Of the body."""


class NoRequest(Exception):  # noqa: N818 (a line, not an error of ours)
    """A line that is no request; says why."""


def request_line(request: bytes) -> tuple[bytes, bytes]:
    """Give method and target of `GET /path HTTP/1.1`; raise Unreadable."""
    words = request.split(b" ")
    if len(words) not in {2, 3} or not words[0].isalpha():
        raise NoRequest("holds no request such as GET /path HTTP/1.1")
    return words[0], words[1]


@lru_cache(maxsize=65536)
def address_of(word: bytes) -> bytes:
    """Give an address of IPv4 or IPv6 without its port; empty for anything else."""
    found = _PORT.fullmatch(word)
    bare = (found[1] or found[2] or b"") if found else word
    try:
        ip_address(bare.decode("ascii"))
    except ValueError:
        return b""
    return bare


def forwarded(listed: bytes) -> bytes:
    """Give the client of `X-Forwarded-For: client, proxy, …`; empty where it is no such list."""
    addresses = [address_of(word.strip()) for word in listed.split(b",")]
    return addresses[0] if all(addresses) else b""


def client(address: bytes, listed: bytes) -> tuple[bytes, Sequence[str]]:
    """Give who asked: a proxy's X-Forwarded-For counts before the proxy's own address."""
    behind = forwarded(listed) if listed not in _NOBODY else b""
    return (behind, (FORWARDED,)) if behind else (address_of(address) or address, ())
