"""Common and combined format, and what is like them: Traefik, ingress-nginx, Gunicorn, Envoy."""

import re
from functools import lru_cache

from webdyno.workload.formats import took
from webdyno.workload.formats.access import (
    QUOTED,
    Access,
    NoRequest,
    address_of,
    client,
    forwarded,
    request_line,
)
from webdyno.workload.formats.times import common_time, moment_of

_COMMON = re.compile(
    rb"\[(\d\d/[^\]]{15,36}|\d{4}-\d\d-\d\d[T ][^\]]{8,24})\] " + QUOTED + rb" (\d{3}) (\d{1,18}|-)"
    rb"(?: " + QUOTED + rb" " + QUOTED + rb")?"
    rb"([^\r\n]*)"
)
_ENVOY = re.compile(
    rb"\[(\d{4}-\d\d-\d\dT[^\]]{8,24})\] " + QUOTED + rb" (\d{1,3}) [A-Za-z,-]+ "
    rb'(?:\S+ \S+ "[^"]*" )?\d+ (\d{1,18}) \d+ (-|\d{1,9}) ' + QUOTED + rb" " + QUOTED
)
_FIRST_QUOTED = re.compile(rb'\s*"([^"]*)"')
MOST_WORDS = 64
"""Before the time, from its end, that are looked at."""


def read_common(line: bytes) -> Access | None:
    """Read a line, whatever a container, a cluster or syslog put before it; None for others."""
    found = _COMMON.search(line)
    if found is None or found[1][2:3] != b"/":  # Envoy writes ISO 8601, as some of nginx's do
        envoy = _ENVOY.search(line)
        if envoy or found is None:
            return _envoy(envoy) if envoy else None
    time, request, status, length, _, agent, rest = found.groups()
    method, target = request_line(request)
    first_quoted = _FIRST_QUOTED.match(rest) if agent and rest else None
    address, remarks = client(
        _client(line[: found.start()]), first_quoted[1] if first_quoted else b""
    )
    return Access(
        common_time(time) if time[2:3] == b"/" else _iso_time(time),
        address,
        agent or b"",
        method,
        target,
        int(status),
        0 if length == b"-" else int(length),
        None,
        took.after_the_line(rest) if rest else None,
        remarks,
    )


@lru_cache(maxsize=65536)
def _client(head: bytes) -> bytes:
    """Find the client in what stands before the time: `client identity user`, or more before it.

    The last address is it, as prefixes and virtual hosts stand before the client, and of a list
    as X-Forwarded-For has it the first. A client's name is known by its place alone.
    """
    words = head.replace(b"\0", b"").split()[-MOST_WORDS:]
    if len(words) == 3 and (known := address_of(words[0])):
        return known
    for at in range(len(words) - 1, -1, -1):
        if known := address_of(words[at]):
            begins = at
            while begins and words[begins - 1].endswith(b","):
                begins -= 1
            return forwarded(b" ".join(words[begins : at + 1])) or known
    if len(words) > 3 and words[-2] == b"-":
        return words[-3]
    return words[0] if len(words) == 3 or words[1:2] == [b"-"] else b""


def _envoy(found: re.Match[bytes]) -> Access:
    """Read Envoy's own format and Istio's: its times are milliseconds, the client is forwarded."""
    time, request, status, length, behind_ms, listed, agent = found.groups()
    method, target = request_line(request)
    address, remarks = client(b"", listed)
    return Access(
        _iso_time(time),
        address,
        agent,
        method,
        target,
        int(status),
        int(length),
        None,
        0.0 if behind_ms == b"-" else took.in_bounds(int(behind_ms) / 1e3),
        remarks,
    )


def _iso_time(text: bytes) -> float:
    try:
        return moment_of(text.decode())
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None
