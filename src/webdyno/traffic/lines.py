"""Lines of logs as requests, whichever program wrote them."""

import json
import re
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from webdyno.formats.text import Fields
from webdyno.traffic.access import (
    AT_EDGE,
    CASE_BLIND,
    QUOTED,
    Access,
    NoRequest,
    address_of,
    client,
    common_time,
    forwarded_client,
    moment,
    moment_of,
    request_line,
    stamp,
    took_after_line,
    took_in_bounds,
    took_of_caddy,
    took_of_json,
    took_of_number,
)

_PROXY_MANAGER = re.compile(
    rb'\[(\d\d/[^\]]{15,36})\] (?:[^"\[\]]{1,60} )?(\d{3}) - ([A-Z]{1,20}) \S+ \S+ '
    + QUOTED
    + rb" \[Client ([^\]\s]+)\] \[Length (\d{1,18}|-)\] \[Gzip [^\]]*\] (?:\[Sent-to [^\]]*\] )?"
    + QUOTED
)
_HAPROXY = re.compile(
    rb"(?<!\S)(\S+):\d+ \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{1,6})\] \S+ \S+ "
    rb"(?:-?\d+/){3}(-?\d{1,9})/\+?-?\d+ (-?\d{1,3}) \+?(\d{1,18}) \S+ \S+ \S{4} \S+ \S+ "
    rb'([^"]*)"([^"\r\n]*)"?'
)
_ALB = re.compile(
    rb"(?:[a-z0-9]{2,5} )?(\d{4}-\d\d-\d\dT\S{8,24}) \S+ (\S+):\d+ \S+ -?[\d.]+ (-?[\d.]{1,12}) "
    rb"-?[\d.]+ (\d{3}|-) (?:\d{3}|-) \d+ (\d{1,18}) " + QUOTED + rb" " + QUOTED
)


def iso_time(text: bytes) -> float:
    """Read a time in ISO 8601; raise NoRequest where it is none."""
    try:
        return moment_of(text.decode())
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None


def _whole(number: bytes) -> int:
    return 0 if number == b"-" else int(number)


def read_nginx_proxy_manager(line: bytes) -> Access | None:
    """Read a line of Nginx Proxy Manager's `proxy` or `standard` format."""
    match = _PROXY_MANAGER.search(line)
    if match is None:
        return None
    time, status, method, target, address, length, agent = match.groups()
    return Access(common_time(time), address, agent, method, target, int(status), _whole(length))


def read_haproxy(line: bytes) -> Access | None:
    """Read HAProxy's `option httplog`, with or without what syslog puts before it."""
    match = _HAPROXY.search(line)
    if match is None:
        return None
    address, time, server_ms, status, length, captured, request = match.groups()
    return Access(
        common_time(time),
        address,
        captured,
        *request_line(request),
        int(status),
        int(length),
        # The server's own time is -1 where none was asked.
        took_s=took_in_bounds(int(server_ms) / 1e3),
    )


def read_load_balancer(line: bytes) -> Access | None:
    """Read a line of Amazon's Application or Classic Load Balancer."""
    match = _ALB.match(line)
    if match is None:
        return None
    time, address, target_s, status, length, request, agent = match.groups()
    return Access(
        iso_time(time),
        address,
        agent,
        *request_line(request),
        _whole(status),
        int(length),
        took_s=took_of_number(target_s.decode()),
    )


_ENVELOPES = {"log": "time", "MESSAGE": "", "message": "@timestamp", "line": "timestamp"}
"""Keys under which docker, journald, Filebeat and Loki keep a line, and the key of its time."""
_METHOD = ("request_method", "method", "http_method", "RequestMethod", "requestMethod")
_METHOD_AND_TARGET = "request"
_TARGET = ("request_uri", "uri", "path", "url", "RequestPath", "requestUrl", "ClientRequestURI")
_STATUS = ("status", "status_code", "DownstreamStatus", "response_code", "EdgeResponseStatus")
_TIME = (
    *("StartUTC", "StartLocal", "start_time", "EdgeStartTimestamp"),
    *("msec", "time_iso8601", "time_local", "@timestamp", "timestamp", "time", "ts"),
)
_BYTES = (
    *("body_bytes_sent", "bytes_sent", "DownstreamContentSize", "responseSize", "bytes", "size"),
    "EdgeResponseBytes",
)
_ADDRESS = (
    *("remote_addr", "remote_ip", "client_ip", "clientip", "client", "ip", "ClientHost"),
    *("remoteIp", "ClientIP", "downstream_remote_address"),
)
_AGENT = ("http_user_agent", "user_agent", "agent", "userAgent", "request_User-Agent")
_FORWARDED = ("http_x_forwarded_for", "x_forwarded_for", "request_X-Forwarded-For", "xff")


def read_json(text: bytes, before: bytes) -> Access:
    """Read a request, or a line's envelope, after which something may stand; raise NoRequest."""
    try:
        fields = Fields(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise NoRequest("is no JSON object") from None
    for key, time in _ENVELOPES.items():
        if isinstance(line := fields.get(key), str) and "status" not in fields:
            begins = f"{fields.get(time)} " if time in fields else ""
            return read_line(f"{begins}{line}".encode(errors="replace"))
    try:
        if request := fields.inside("request"):
            return _caddy(fields, request, before)
        return _flat(fields | fields.inside("httpRequest"), before)
    except (KeyError, ValueError, TypeError, OverflowError):
        raise NoRequest("lacks time, method, path or status, or has a wrong one") from None


def _caddy(fields: Fields, request: Fields, before: bytes) -> Access:
    """Read Caddy's JSON, or its console format, whose time and logger stand before the object."""
    if str(fields.get("logger", "")).startswith("http.log.error") or b"http.log.error" in before:
        raise NoRequest("reports an error, whose request has a line of its own")
    headers = request.inside("headers")
    address = request.get("client_ip") or request.get("remote_ip") or request.get("remote_addr")
    behind = request.get("client_ip") not in {None, request.get("remote_ip")}
    who, remarks = client(
        _plain(address), b"" if behind else _plain(_header(headers, "X-Forwarded-For"))
    )
    return Access(
        moment(fields["ts"]) if "ts" in fields else _time_before(before),
        who,
        _plain(_header(headers, "User-Agent")),
        _text(request["method"]),
        _text(request["uri"]),
        int(fields["status"]),
        _length(fields.get("size")),
        took_s=took_of_caddy(fields.get("duration")),
        remarks=remarks,
    )


def _flat(fields: dict[str, Any], before: bytes) -> Access:
    """Read the names that nginx, Traefik, Envoy and others have for the same things."""
    method, target = _first(fields, _METHOD), _first(fields, _TARGET)
    if method is None:
        request_words = request_line(_text(fields[_METHOD_AND_TARGET]))
    else:
        request_words = _text(method), _text(target)
    address, remarks = client(_plain(_first(fields, _ADDRESS)), _plain(_first(fields, _FORWARDED)))
    nth = fields.get("connection_requests")
    time = _first(fields, _TIME)
    return Access(
        _time_before(before) if time is None else moment(time),
        address,
        _plain(_first(fields, _AGENT)),
        *request_words,
        int(_first(fields, _STATUS)),
        _length(_first(fields, _BYTES)),
        None if nth in {None, ""} else int(nth) == 1,
        took_of_json(fields),
        remarks,
    )


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401 (what JSON has)
    return next((fields[name] for name in names if name in fields), None)


def _header(headers: Fields, name: str) -> object:
    values = headers.get(name)
    return values[0] if isinstance(values, list) and values else values


def _time_before(before: bytes) -> float:
    time_s = stamp(before)
    if time_s is None:
        raise ValueError
    return time_s


def _plain(value: object) -> bytes:
    return b"" if value in (None, "-") else str(value).encode(errors="replace")


def _text(value: object) -> bytes:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value.encode(errors="replace")


def _length(value: object) -> int | None:
    if value is None:
        return None
    number = int(str(value)) if value not in {"", "-"} else 0
    if not 0 <= number < 2**62:
        raise ValueError
    return number


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
"""Most words before the time that are looked at, from its end."""
_UVICORN = re.compile(rb"(?<!\S)(\S+):\d+ - " + QUOTED + rb" (\d{3})\b")
_NEEDED = ("date", "time", "cs-method", "cs-uri-stem", "sc-status")
READ = (
    "common and combined format, JSON of nginx, Caddy, Traefik and Envoy, Nginx Proxy Manager, "
    "HAProxy, IIS, CloudFront, Amazon's load balancers, HAR"
)


def read_common(line: bytes) -> Access | None:
    """Read a line, whatever a container, a cluster or syslog put before it; None for others."""
    match = _COMMON.search(line)
    if match is None or match[1][2:3] != b"/":  # Envoy writes ISO 8601, as some of nginx's do
        envoy = _ENVOY.search(line)
        if envoy or match is None:
            return _envoy(envoy) if envoy else None
    time, request, status, length, _, agent, rest = match.groups()
    first_quoted = _FIRST_QUOTED.match(rest) if agent and rest else None
    address, remarks = client(
        _client(line[: match.start()]), first_quoted[1] if first_quoted else b""
    )
    return Access(
        common_time(time) if time[2:3] == b"/" else iso_time(time),
        address,
        agent or b"",
        *request_line(request),
        int(status),
        _whole(length),
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
    for place in range(len(words) - 1, -1, -1):
        if known := address_of(words[place]):
            begins = place
            while begins and words[begins - 1].endswith(b","):
                begins -= 1
            return forwarded_client(b" ".join(words[begins : place + 1])) or known
    if len(words) > 3 and words[-2] == b"-":
        return words[-3]
    return words[0] if len(words) == 3 or words[1:2] == [b"-"] else b""


def _envoy(match: re.Match[bytes]) -> Access:
    """Read Envoy's own format and Istio's: its times are milliseconds, the client is forwarded."""
    time, request, status, length, behind_ms, listed, agent = match.groups()
    address, remarks = client(b"", listed)
    return Access(
        iso_time(time),
        address,
        agent,
        *request_line(request),
        int(status),
        int(length),
        took_s=took_in_bounds(_whole(behind_ms) / 1e3),
        remarks=remarks,
    )


def read_uvicorn(line: bytes) -> Access | None:
    """Read uvicorn's line, where something before it has the time."""
    match = _UVICORN.search(line)
    if match is None:
        return None
    address, request, status = match.groups()
    time_s = stamp(line[: match.start()])
    if time_s is None:
        raise NoRequest("has no time")
    return Access(time_s, address, b"", *request_line(request), int(status), None)


class Lines:
    """Reads the lines of one log.

    Those of W3C's extended format (IIS, CloudFront) have the fields that a `#Fields:` line names.
    """

    def __init__(self) -> None:
        self._fields: list[str] = []
        self._iis = self._tabs = False

    def read(self, line: bytes) -> Access | None:
        """Return a line's request, None for a comment; raise NoRequest where it has none."""
        if not line.startswith(b"#"):
            return self._read_w3c(line) if self._fields else read_line(line)
        if line.startswith(b"#Software:"):
            self._iis = b"Internet Information" in line
        if line.startswith(b"#Fields:"):
            self._fields = line[len(b"#Fields:") :].decode(errors="replace").split()
            self._tabs = "x-edge-location" in self._fields
        return None

    def _read_w3c(self, line: bytes) -> Access:
        lacking = [name for name in _NEEDED if name not in self._fields]
        if lacking:
            raise NoRequest(f"follows a line #Fields: that doesn't name {', '.join(lacking)}")
        text = line.decode(errors="surrogateescape").rstrip("\r\n")
        values = text.split("\t" if self._tabs else " ")
        if len(values) != len(self._fields):
            raise NoRequest(f"has {len(values)} values, and #Fields: names {len(self._fields)}")
        try:
            return self._access(dict(zip(self._fields, values, strict=True)))
        except (ValueError, OverflowError):
            raise NoRequest("has a wrong time, status or length") from None

    def _access(self, values: dict[str, str]) -> Access:
        query = values.get("cs-uri-query", "-")
        target = values["cs-uri-stem"] + ("" if query == "-" else f"?{query}")
        remarks = [AT_EDGE] * (values.get("x-edge-result-type") == "Hit") + [CASE_BLIND] * self._iis
        listed = _bytes(values.get("x-forwarded-for", values.get("X-Forwarded-For", "")))
        address, by_proxy = client(
            _bytes(values.get("c-ip", "")), unquote_to_bytes(listed.replace(b"+", b" "))
        )
        return Access(
            moment_of(f"{values['date']}T{values['time']}"),
            address,
            _bytes(values.get("cs(User-Agent)", "")),
            _bytes(values["cs-method"]),
            _bytes(target),
            int(values["sc-status"]),
            None if (sent := values.get("sc-bytes", "-")) == "-" else int(sent),
            # CloudFront has seconds, of which the first byte's are nearest to the server's; IIS ms.
            took_s=took_of_number(
                values.get("time-to-first-byte") or values.get("time-taken"),
                1.0 if self._tabs else 1e-3,
            ),
            remarks=(*remarks, *by_proxy),
        )


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def read_line(line: bytes) -> Access:
    """Read a line of a format that names no fields, the first that knows it; raise NoRequest."""
    if line.startswith(b"{"):
        return read_json(line, b"")
    proxies = read_nginx_proxy_manager, read_haproxy, read_load_balancer
    for read in (read_common, *proxies, read_uvicorn):
        if access := read(line):
            return access
    begins = line.find(b"{")
    if begins > 0 and line.rstrip().endswith(b"}"):
        return read_json(line[begins:], line[:begins])
    raise NoRequest("is in none of the formats that are read")
