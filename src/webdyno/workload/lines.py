"""Lines of logs as requests, whichever program wrote them."""

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from webdyno.workload.access import (
    AT_EDGE,
    CASE_BLIND,
    QUOTED,
    Access,
    NoRequest,
    address_of,
    client,
    common_time,
    forwarded,
    moment_of,
    request_line,
    stamp,
    took_after_line,
    took_in_bounds,
    took_of_number,
)
from webdyno.workload.json_lines import read_json

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
READ = (
    "common and combined format, JSON of nginx, Caddy, Traefik and Envoy, HAProxy, IIS, CloudFront,"
    " Amazon's load balancers, HAR"
)


def read_common(line: bytes) -> Access | None:
    """Read a line, whatever a container, a cluster or syslog put before it; None for others."""
    match = _COMMON.search(line)
    if match is None or match[1][2:3] != b"/":  # Envoy writes ISO 8601, as some of nginx's do
        envoy = _ENVOY.search(line)
        if envoy or match is None:
            return _envoy(envoy) if envoy else None
    time, request, status, length, _, agent, rest = match.groups()
    request_words = request_line(request)
    first_quoted = _FIRST_QUOTED.match(rest) if agent and rest else None
    address, remarks = client(
        _client(line[: match.start()]), first_quoted[1] if first_quoted else b""
    )
    return Access(
        common_time(time) if time[2:3] == b"/" else _iso_time(time),
        address,
        agent or b"",
        *request_words,
        int(status),
        0 if length == b"-" else int(length),
        took_s=took_after_line(rest) if rest else None,
        remarks=remarks,
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


def _envoy(match: re.Match[bytes]) -> Access:
    """Read Envoy's own format and Istio's: its times are milliseconds, the client is forwarded."""
    time, request, status, length, behind_ms, listed, agent = match.groups()
    request_words = request_line(request)
    address, remarks = client(b"", listed)
    return Access(
        _iso_time(time),
        address,
        agent,
        *request_words,
        int(status),
        int(length),
        took_s=0.0 if behind_ms == b"-" else took_in_bounds(int(behind_ms) / 1e3),
        remarks=remarks,
    )


def _iso_time(text: bytes) -> float:
    try:
        return moment_of(text.decode())
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None


def read_haproxy(line: bytes) -> Access | None:
    """Read HAProxy's `option httplog`, with or without what syslog puts before it."""
    match = _HAPROXY.search(line)
    if match is None:
        return None
    address, time, server_ms, status, length, captured, request = match.groups()
    request_words = request_line(request)
    # The server's own time is -1 where none was asked.
    took_s = took_in_bounds(int(server_ms) / 1e3)
    return Access(
        common_time(time), address, captured, *request_words, int(status), int(length), None, took_s
    )


def read_load_balancer(line: bytes) -> Access | None:
    """Read a line of Amazon's Application or Classic Load Balancer."""
    match = _ALB.match(line)
    if match is None:
        return None
    time, address, target_s, status, length, request, agent = match.groups()
    request_words = request_line(request)
    return Access(
        _iso_time(time),
        address,
        agent,
        *request_words,
        0 if status == b"-" else int(status),
        int(length),
        took_s=took_of_number(target_s.decode()),
    )


def read_uvicorn(line: bytes) -> Access | None:
    """Read uvicorn's line, where something before it has the time."""
    match = _UVICORN.search(line)
    if match is None:
        return None
    address, request, status = match.groups()
    request_words = request_line(request)
    time_s = stamp(line[: match.start()])
    if time_s is None:
        raise NoRequest("has no time")
    return Access(time_s, address, b"", *request_words, int(status), 0)


class W3c:
    """W3C's extended format (IIS, CloudFront): reads the lines that follow a `#Fields:` line."""

    def __init__(self) -> None:
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
        """Give a line's request; raise NoRequest where it has none."""
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
            took_s=self._took_s(found),
            remarks=(*remarks, *by_proxy),
        )

    def _took_s(self, found: dict[str, str]) -> float | None:
        """CloudFront has seconds, of which the first byte's are nearest to the server's; IIS ms."""
        told = found.get("time-to-first-byte") or found.get("time-taken")
        return took_of_number(told, 1.0 if self._tabs else _MS)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


class Lines:
    """Reads the lines of one log: some formats name their fields as they go."""

    def __init__(self) -> None:
        self._w3c = W3c()

    def read(self, line: bytes) -> Access | None:
        """Give a line's request; raise NoRequest where it has none."""
        if line.startswith(b"#"):
            self._w3c.comment(line)
            return None
        return self._w3c.read(line) if self._w3c.fields else read_line(line)


def read_line(line: bytes) -> Access:
    """Read a line of a format that names no fields; raise NoRequest."""
    if line.startswith(b"{"):
        return read_json(line, b"", read_line)
    for read in (read_common, read_haproxy, read_load_balancer, read_uvicorn):
        if access := read(line):
            return access
    begins = line.find(b"{")
    if begins > 0 and line.rstrip().endswith(b"}"):
        return read_json(line[begins:], line[:begins], read_line)
    raise NoRequest("is in none of the formats that are read")
