"""One line of a log as a request: combined and common format, nginx's and Caddy's JSON."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

from webdyno.workload import took


class Access(NamedTuple):
    """A request as a log has it."""

    time_s: float
    """Since 1970, in UTC."""
    client: bytes
    """Address and agent: who it was, as far as a log tells. Hashed as soon as it is read."""
    method: bytes
    target: bytes
    """Path and query, or all of an address."""
    status: int
    body_bytes: int
    first_on_connection: bool | None
    """None where the log doesn't tell."""
    took_s: float | None = None
    """Until it was answered; None where the log doesn't tell."""


class Unreadable(Exception):  # noqa: N818 (a line, not an error of ours)
    """A line that is no request; says why."""


_QUOTED = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_COMMON = re.compile(
    rb"(\S+) \S+ [^\[]*\[([^\]]{20,40})\] " + _QUOTED + rb" (\d{3}) (\d{1,18}|-)"
    rb"(?: " + _QUOTED + rb" " + _QUOTED + rb")?"
    rb"([^\r\n]*)"
)
_MONTHS = {
    name: number
    for number, name in enumerate(
        (b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec").split(), start=1
    )
}
_COMMON_TIME = re.compile(
    rb"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)"
)
LATEST_S = 253_402_300_799.0
"""The end of the year 9999."""


def read_line(line: bytes) -> Access:
    """Read a line of a log, whichever of the formats it is in; raise Unreadable."""
    return _json(line) if line.startswith(b"{") else _common(line)


def _common(line: bytes) -> Access:
    found = _COMMON.match(line)
    if found is None:
        raise Unreadable("is in neither the common nor the combined format")
    client, time, request, status, length, _, agent, rest = found.groups()
    method, target = _request_line(request)
    return Access(
        _common_time(time),
        client + b" " + (agent or b""),
        method,
        target,
        int(status),
        0 if length == b"-" else int(length),
        None,
        took.after_the_line(rest) if rest else None,
    )


def _request_line(request: bytes) -> tuple[bytes, bytes]:
    words = request.split(b" ")
    if len(words) not in {2, 3} or not words[0].isalpha():
        raise Unreadable("holds no request such as GET /path HTTP/1.1")
    return words[0], words[1]


@lru_cache(maxsize=1024)
def _common_time(text: bytes) -> float:
    found = _COMMON_TIME.fullmatch(text)
    month = _MONTHS.get(found[2]) if found else None
    if found is None or month is None:
        raise Unreadable("has no time such as 22/Nov/2026:13:55:36 +0100")
    day, year, hour, minute, second = (int(found[it]) for it in (1, 3, 4, 5, 6))
    ahead = timedelta(hours=int(found[8]), minutes=int(found[9]))
    try:
        zone = timezone(ahead if found[7] == b"+" else -ahead)
        at = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
        return at.timestamp()
    except (ValueError, OverflowError):
        raise Unreadable("has a time that there never was") from None


def _json(line: bytes) -> Access:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise Unreadable("is no JSON") from None
    if not isinstance(found, dict):
        raise Unreadable("is no JSON object")
    try:
        return _caddy(found) if isinstance(found.get("request"), dict) else _nginx(found)
    except (KeyError, ValueError, TypeError, OverflowError):
        raise Unreadable("lacks time, method, path or status, or has a wrong one") from None


def _caddy(found: dict[str, Any]) -> Access:
    request = found["request"]
    headers = request.get("headers")
    agent = headers.get("User-Agent", "") if isinstance(headers, dict) else ""
    address = request.get("client_ip") or request.get("remote_ip") or request.get("remote_addr")
    return Access(
        _moment(found["ts"]),
        f"{address} {agent}".encode(errors="replace"),
        _text(request["method"]),
        _text(request["uri"]),
        int(found["status"]),
        _length(found.get("size")),
        None,
        took.of_number(found.get("duration")),
    )


def _nginx(found: dict[str, Any]) -> Access:
    """Read what people's `log_format … escape=json` writes: nginx's own names of variables."""
    if "request_method" in found:
        method = _text(found["request_method"])
        target = _text(_first(found, "request_uri", "uri"))
    else:
        method, target = _request_line(_text(found["request"]))
    address = found.get("remote_addr") or found.get("remote_ip")
    nth = found.get("connection_requests")
    return Access(
        _moment(_first(found, "msec", "time_iso8601", "time_local", "@timestamp", "time")),
        f"{address} {found.get('http_user_agent')}".encode(errors="replace"),
        method,
        target,
        int(found["status"]),
        _length(found.get("body_bytes_sent", found.get("bytes_sent"))),
        None if nth in {None, ""} else int(nth) == 1,
        took.of_nginx(found),
    )


def _first(found: dict[str, Any], *keys: str) -> Any:  # noqa: ANN401 (whatever JSON has)
    return found[next((key for key in keys if key in found), keys[0])]


def _text(value: object) -> bytes:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value.encode(errors="replace")


def _length(value: object) -> int:
    number = int(str(value)) if value not in {None, "", "-"} else 0
    if not 0 <= number < 2**62:
        raise ValueError
    return number


def _moment(value: object) -> float:
    """Read a time: seconds since 1970, ISO 8601, or as the common format has it."""
    text = str(value)
    try:
        seconds = float(text)
    except ValueError:
        if re.match(r"\d\d/", text):
            return _common_time(text.encode())
        seconds = moment_of(text)
    if not 0 <= seconds <= LATEST_S:
        raise ValueError
    return seconds


def moment_of(text: str) -> float:
    """Read a time in ISO 8601, in UTC unless it names a zone; raise ValueError."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
