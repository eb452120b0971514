"""A request as a log has it, and times and durations as the programs that write logs spell them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, NamedTuple

FORWARDED, AT_EDGE, CASE_BLIND = "client by X-Forwarded-For", "answered at the edge", "of IIS"
"""Remarks on a request."""
QUOTED = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_NOBODY = (b"", b"-")
_PORT = re.compile(rb"\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+")
LATEST_S = 253_402_300_799.0
"""The end of the year 9999."""
_MONTHS = {
    name: number
    for number, name in enumerate(
        (b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec").split(), start=1
    )
}
_COMMON_TIME = re.compile(
    rb"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?: ([+-])(\d\d):?(\d\d))?"
)
_SMALLER_UNITS = ((1e11, 1.0), (1e14, 1e-3), (1e17, 1e-6), (1e20, 1e-9))
"""The largest number since 1970 for each unit: seconds, ms, µs, ns."""
_STAMP = re.compile(
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
)
LONGEST_S = 3_600.0
MICRO, NANO = 1e-6, 1e-9
UPSTREAM, REQUEST = "upstream_response_time", "request_time"
_OTHER_KEYS = {
    "OriginDuration": NANO,
    "Duration": NANO,
    "upstream_service_time": 1e-3,
    "latency": 1.0,
}
"""Keys of Traefik, Envoy and Google, the server's own time first; their units in s."""
_MICROSECONDS = re.compile(rb"\d{1,10}")
_TIMES = rb"\d{1,4}\.\d{3}(?:\d{3})?(?:(?:, | : )(?:\d{1,4}\.\d{3}|-)){0,20}"
"""Of each try to have a request answered. A visitor's header may hold thousands of such times."""
_SECONDS = re.compile(rb"(?:(?<=[ \"])|^)(" + _TIMES + rb')(?=[ "]|$)')
"""As nginx writes them, always with three decimals: neither a port nor a number of bytes."""
_NAMED = re.compile(
    rb"\b(?:(rt|request_time|req_time)|urt|ut|upstream_response_time|upstream_time)[=:] ?"
    rb'"?(' + _TIMES + rb"|-)"
)
_INGRESS = re.compile(
    rb" \d{1,19} \d{1,9}\.\d{3} \[[^\]]{0,300}\] \[[^\]]{0,300}\] [^\[\]]{0,1000}? "
    rb"(" + _TIMES + rb"|-) "
)
_MILLISECONDS = re.compile(rb' (\d{1,7})ms"?$')
_NUMBER = re.compile(r"\d{1,4}\.\d{1,6}")
_GO = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|us|µs|μs|ns)")
_GO_UNITS = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": MICRO,
    "µs": MICRO,
    "μs": MICRO,
    "ns": NANO,
}


class Access(NamedTuple):
    """A request as a log has it."""

    time_s: float
    """Since 1970, in UTC."""
    address: bytes
    """Who asked; empty where the log doesn't say. Hashed as soon as it is read, as the agent."""
    agent: bytes
    method: bytes
    target: bytes
    """Path and query, or all of an address."""
    status: int
    body_bytes: int | None
    """None where the log doesn't say."""
    first_on_connection: bool | None = None
    """None where the log doesn't say."""
    took_s: float | None = None
    """Until it was answered; None where the log doesn't say."""
    remarks: Sequence[str] = ()
    body: bytes = b""
    """What it sent: only HAR files have it."""
    content_type: str = ""
    """Of the body."""


class NoRequest(Exception):  # noqa: N818 (a line, not an error of ours)
    """A line that is no request; says why."""


def request_line(request: bytes) -> tuple[bytes, bytes]:
    """Return method and target of `GET /path HTTP/1.1`; raise NoRequest."""
    words = request.split(b" ")
    if len(words) not in {2, 3} or not words[0].isalpha():
        raise NoRequest("holds no request such as GET /path HTTP/1.1")
    return words[0], words[1]


@lru_cache(maxsize=65536)
def address_of(word: bytes) -> bytes:
    """Return an address of IPv4 or IPv6 without its port; empty for anything else."""
    match = _PORT.fullmatch(word)
    bare = (match[1] or match[2] or b"") if match else word
    try:
        ip_address(bare.decode("ascii"))
    except ValueError:
        return b""
    return bare


def forwarded_client(listed: bytes) -> bytes:
    """Return the client of `X-Forwarded-For: client, proxy, …`; empty where it is no such list."""
    addresses = [address_of(word.strip()) for word in listed.split(b",")]
    return addresses[0] if all(addresses) else b""


def client(address: bytes, listed: bytes) -> tuple[bytes, Sequence[str]]:
    """Return who asked: a proxy's X-Forwarded-For counts before the proxy's own address."""
    behind = forwarded_client(listed) if listed not in _NOBODY else b""
    return (behind, (FORWARDED,)) if behind else (address_of(address) or address, ())


@lru_cache(maxsize=1024)
def common_time(text: bytes) -> float:
    """Read 22/Nov/2026:13:55:36 +0100, in UTC unless it names a zone; raise NoRequest."""
    match = _COMMON_TIME.fullmatch(text)
    month = _MONTHS.get(match[2]) if match else None
    if match is None or month is None:
        raise NoRequest("has no time such as 22/Nov/2026:13:55:36 +0100")
    day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
    ahead = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
    try:
        zone = timezone(-ahead if match[8] == b"-" else ahead)
        second_begins = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
        return second_begins.timestamp() + float(match[7] or 0)
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None


def moment(value: object) -> float:
    """Read a time: a number since 1970 (s, ms, µs, ns), ISO 8601, or the common format.

    Raise ValueError where it is none.
    """
    text = str(value)
    try:
        number = float(text)
    except ValueError:
        if re.match(r"\d\d/", text):
            return common_time(text.encode())
        seconds = moment_of(text)
    else:
        seconds = next((number * unit for most, unit in _SMALLER_UNITS if number < most), number)
    if not 0 <= seconds <= LATEST_S:
        raise ValueError
    return seconds


def stamp(text: bytes) -> float | None:
    """Return the first time in what stands before a line, such as docker's; None without one."""
    match = _STAMP.search(text)
    try:
        return moment_of(match[0].decode().replace(",", ".")) if match else None
    except ValueError:
        return None


def moment_of(text: str) -> float:
    """Read ISO 8601, its day also as 2026/11/22, UTC unless it names a zone; raise ValueError."""
    instant = datetime.fromisoformat(text.replace("/", "-"))
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def took_after_line(rest: bytes) -> float | None:
    """Read what follows the common and the combined format, in seconds.

    A whole number alone is Apache's `%D`, what ends in ms Traefik's. nginx's times have names, as
    in `rt=0.012 urt="0.011"`, or stand alone. That of the server behind counts: the request's
    goes on until the client has it all. So of two that stand alone the smaller one counts.
    """
    words = rest.split()
    if not words:
        return None
    if len(words) == 1 and _MICROSECONDS.fullmatch(words[0]):
        return took_in_bounds(int(words[0]) * MICRO)
    if match := _MILLISECONDS.search(rest.rstrip()):
        return took_in_bounds(int(match[1]) / 1e3)
    if match := _INGRESS.search(rest):
        return 0.0 if match[1] == b"-" else _sum_of(match[1].decode())
    if named := _NAMED.findall(rest):
        behind = next((times for request, times in named if not request), named[0][1])
        return 0.0 if behind == b"-" else _sum_of(behind.decode())
    alone = (_sum_of(times.decode()) for times in _SECONDS.findall(rest))
    return min((entry for entry in alone if entry is not None), default=None)


def took_of_json(fields: dict[str, Any]) -> float | None:
    """Read nginx's variables, or what Traefik, Envoy and Google call them.

    The time of the server behind counts before that of the request, which goes on until the
    client has it all. What no server behind had to answer took none.
    """
    behind = fields.get(UPSTREAM)
    if behind is not None:
        return _sum_of(str(behind))
    if REQUEST in fields:
        return took_of_number(fields[REQUEST])
    for key, unit in _OTHER_KEYS.items():
        if key in fields:
            took = fields[key]
            return _took_of_go(took) if str(took).endswith("s") else took_of_number(took, unit)
    return None


def took_of_caddy(value: object) -> float | None:
    """Read Caddy's durations: seconds, nanoseconds, or as Go writes them: `12.5ms`."""
    if isinstance(value, str) and _GO.search(value):
        return _took_of_go(value)
    nanoseconds = isinstance(value, int) and value > LONGEST_S
    return took_of_number(value, NANO if nanoseconds else 1.0)


def _took_of_go(value: object) -> float | None:
    """Read a duration as Go writes it: `1m2.5s`, `12.5ms`."""
    parts = _GO.findall(str(value)[:60])
    if not parts or "".join(map("".join, parts)) != value:
        return None
    return took_in_bounds(sum(float(number) * _GO_UNITS[unit] for number, unit in parts))


def took_of_number(value: object, unit_s: float = 1.0) -> float | None:
    """Read a number of seconds, or of another unit, or its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return took_in_bounds(float(value) * unit_s)
    except (ValueError, OverflowError):
        return None


def took_in_bounds(seconds: float) -> float | None:
    """Return a time that a response can have taken; None for any other."""
    return seconds if 0 <= seconds <= LONGEST_S else None


def _sum_of(times: str) -> float | None:
    """Add the times of servers that were asked one after the other: "0.004, 0.012"."""
    return took_in_bounds(sum(map(float, _NUMBER.findall(times))))
