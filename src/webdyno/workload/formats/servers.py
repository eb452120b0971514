"""Formats of single programs: HAProxy, Amazon's load balancers, uvicorn, IIS, CloudFront."""

import re
from urllib.parse import unquote_to_bytes

from webdyno.workload.formats import took
from webdyno.workload.formats.access import (
    AT_EDGE,
    CASE_BLIND,
    QUOTED,
    Access,
    NoRequest,
    client,
    request_line,
)
from webdyno.workload.formats.times import common_time, moment_of, stamp

_HAPROXY = re.compile(
    rb"(\S+):\d+ \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{1,6})\] \S+ \S+ "
    rb"(?:-?\d+/){3}(-?\d{1,9})/\+?-?\d+ (-?\d{1,3}) \+?(\d{1,18}) \S+ \S+ \S{4} \S+ \S+ "
    rb'([^"]*)"([^"\r\n]*)"?'
)
_ALB = re.compile(
    rb"(?:[a-z0-9]{2,5} )?(\d{4}-\d\d-\d\dT\S{8,24}) \S+ (\S+):\d+ \S+ -?[\d.]+ (-?[\d.]{1,12}) "
    rb"-?[\d.]+ (\d{3}|-) (?:\d{3}|-) \d+ (\d{1,18}) " + QUOTED + rb" " + QUOTED
)
_UVICORN = re.compile(rb"(\S+):\d+ - " + QUOTED + rb" (\d{3})\b")
_NEEDED = ("date", "time", "cs-method", "cs-uri-stem", "sc-status")
_HIT = "Hit"
_MS = 1e-3


def read_haproxy(line: bytes) -> Access | None:
    """Read HAProxy's `option httplog`, with or without what syslog puts before it."""
    found = _HAPROXY.search(line)
    if found is None:
        return None
    address, time, server_ms, status, length, captured, request = found.groups()
    method, target = request_line(request)
    # The server's own time is -1 where none was asked.
    took_s = took.in_bounds(int(server_ms) / 1e3)
    return Access(
        common_time(time),
        address,
        captured,
        method,
        target,
        int(status),
        int(length),
        None,
        took_s,
    )


def read_load_balancer(line: bytes) -> Access | None:
    """Read a line of Amazon's Application or Classic Load Balancer."""
    found = _ALB.match(line)
    if found is None:
        return None
    time, address, target_s, status, length, request, agent = found.groups()
    method, target = request_line(request)
    try:
        time_s = moment_of(time.decode())
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None
    return Access(
        time_s,
        address,
        agent,
        method,
        target,
        0 if status == b"-" else int(status),
        int(length),
        None,
        took.of_number(target_s.decode()),
    )


def read_uvicorn(line: bytes) -> Access | None:
    """Read uvicorn's line, where something before it has the time."""
    found = _UVICORN.search(line)
    if found is None:
        return None
    address, request, status = found.groups()
    method, target = request_line(request)
    time_s = stamp(line[: found.start()])
    if time_s is None:
        raise NoRequest("has no time")
    return Access(time_s, address, b"", method, target, int(status), 0)


class W3c:
    """W3C's extended format (IIS, CloudFront): reads the lines that follow a `#Fields:` line."""

    def __init__(self) -> None:
        """Begin without fields: no line is read before they are named."""
        self.fields: list[str] = []
        self._iis = False
        self._tabs = False

    def comment(self, line: bytes) -> None:
        """Take a line that begins with #: it may name the fields of those that follow."""
        if line.startswith(b"#Software:"):
            self._iis = b"Internet Information" in line
        if line.startswith(b"#Fields:"):
            self.fields = line[len(b"#Fields:") :].decode(errors="replace").split()
            self._tabs = "x-edge-location" in self.fields

    def read(self, line: bytes) -> Access:
        """Read a line; raise Unreadable."""
        lacking = [name for name in _NEEDED if name not in self.fields]
        if lacking:
            raise NoRequest(f"follows a line #Fields: that doesn't name {', '.join(lacking)}")
        text = line.decode(errors="surrogateescape").rstrip("\r\n")
        values = text.split("\t" if self._tabs else " ")
        if len(values) != len(self.fields):
            raise NoRequest(f"has {len(values)} values, and #Fields: names {len(self.fields)}")
        found = dict(zip(self.fields, values, strict=True))
        try:
            return self._access(found)
        except (ValueError, OverflowError):
            raise NoRequest("has a wrong time, status or length") from None

    def _access(self, found: dict[str, str]) -> Access:
        query = found.get("cs-uri-query", "-")
        target = found["cs-uri-stem"] + ("" if query == "-" else f"?{query}")
        remarks = [AT_EDGE] * (found.get("x-edge-result-type") == _HIT) + [CASE_BLIND] * self._iis
        listed = _bytes(found.get("x-forwarded-for", found.get("X-Forwarded-For", "")))
        address, by_proxy = client(
            _bytes(found.get("c-ip", "")), unquote_to_bytes(listed.replace(b"+", b" "))
        )
        return Access(
            moment_of(f"{found['date']}T{found['time']}"),
            address,
            _bytes(found.get("cs(User-Agent)", "")),
            _bytes(found["cs-method"]),
            _bytes(target),
            int(found["sc-status"]),
            int(found.get("sc-bytes", "0").replace("-", "0")),
            None,
            self._took_s(found),
            (*remarks, *by_proxy),
        )

    def _took_s(self, found: dict[str, str]) -> float | None:
        """CloudFront has seconds, of which the first byte's are nearest to the server's; IIS ms."""
        told = found.get("time-to-first-byte") or found.get("time-taken")
        return took.of_number(told, 1.0 if self._tabs else _MS)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
