"""How long an answer took, as logs tell it in their many ways; None where they don't."""

import re
from typing import Any

LONGEST_S = 3_600.0
MICRO, NANO = 1e-6, 1e-9
UPSTREAM, REQUEST = "upstream_response_time", "request_time"
_OTHER_KEYS = {
    "OriginDuration": NANO,
    "Duration": NANO,
    "upstream_service_time": 1e-3,
    "latency": 1.0,
}
"""Of Traefik, Envoy and Google, the server's own time before the request's; their units in s."""
_MICROSECONDS = re.compile(rb"\d{1,10}")
_TIMES = rb"\d{1,4}\.\d{3}(?:\d{3})?(?:(?:, | : )(?:\d{1,4}\.\d{3}|-))*"
_SECONDS = re.compile(rb"(?:(?<=[ \"])|^)(" + _TIMES + rb')(?=[ "]|$)')
"""As nginx writes them, always with three decimals: neither a port nor a number of bytes."""
_NAMED = re.compile(
    rb"\b(?:(rt|request_time|req_time)|urt|ut|upstream_response_time|upstream_time)[=:] ?"
    rb'"?(' + _TIMES + rb"|-)"
)
_INGRESS = re.compile(rb" \d+ \d+\.\d{3} \[[^\]]*\] \[[^\]]*\] [^\[\]]*? (" + _TIMES + rb"|-) ")
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


def after_the_line(rest: bytes) -> float | None:
    """Read what follows the common and the combined format, in seconds.

    A whole number alone is Apache's `%D`, what ends in ms Traefik's. nginx's times have names, as
    in `rt=0.012 urt="0.011"`, or stand alone. That of the server behind counts: the request's
    goes on until the client has it all. So of two that stand alone the smaller one counts.
    """
    words = rest.split()
    if not words:
        return None
    if len(words) == 1 and _MICROSECONDS.fullmatch(words[0]):
        return in_bounds(int(words[0]) * MICRO)
    if found := _MILLISECONDS.search(rest.rstrip()):
        return in_bounds(int(found[1]) / 1e3)
    if found := _INGRESS.search(rest):
        return 0.0 if found[1] == b"-" else _sum_of(found[1].decode())
    if named := _NAMED.findall(rest):
        told = next((times for request, times in named if not request), named[0][1])
        return 0.0 if told == b"-" else _sum_of(told.decode())
    alone = (_sum_of(times.decode()) for times in _SECONDS.findall(rest))
    return min((it for it in alone if it is not None), default=None)


def of_json(found: dict[str, Any]) -> float | None:
    """Read nginx's variables, or what Traefik, Envoy and Google call them.

    The time of the server behind counts before that of the request, which goes on until the
    client has it all. What no server behind had to answer took none.
    """
    behind = found.get(UPSTREAM)
    if behind is not None:
        return _sum_of(str(behind))
    if REQUEST in found:
        return of_number(found[REQUEST])
    for key, unit in _OTHER_KEYS.items():
        if key in found:
            told = found[key]
            return of_go(told) if str(told).endswith("s") else of_number(told, unit)
    return None


def of_caddy(value: object) -> float | None:
    """Read Caddy's durations: seconds, nanoseconds, or as Go writes them: `12.5ms`."""
    if isinstance(value, str) and _GO.search(value):
        return of_go(value)
    nanoseconds = isinstance(value, int) and value > LONGEST_S
    return of_number(value, NANO if nanoseconds else 1.0)


def of_go(value: object) -> float | None:
    """Read a duration as Go writes it: `1m2.5s`, `12.5ms`."""
    parts = _GO.findall(str(value)[:60])
    if not parts or "".join(map("".join, parts)) != value:
        return None
    return in_bounds(sum(float(number) * _GO_UNITS[unit] for number, unit in parts))


def of_number(value: object, unit_s: float = 1.0) -> float | None:
    """Read a number of seconds, or of another unit, or its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return in_bounds(float(value) * unit_s)
    except (ValueError, OverflowError):
        return None


def in_bounds(seconds: float) -> float | None:
    """Give a time that an answer can have taken; None for any other."""
    return seconds if 0 <= seconds <= LONGEST_S else None


def _sum_of(times: str) -> float | None:
    """Add the times of servers that were asked one after the other: "0.004, 0.012"."""
    return in_bounds(sum(map(float, _NUMBER.findall(times))))
