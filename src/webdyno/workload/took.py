"""How long an answer took, as logs tell it in their many ways; None where they don't."""

import re
from typing import Any

LONGEST_S = 3_600.0
MICRO = 1e-6
UPSTREAM, REQUEST = "upstream_response_time", "request_time"
_MICROSECONDS = re.compile(rb"\d{1,10}")
_SECONDS = re.compile(rb'"?(\d{1,4}\.\d{3})"?')
"""As nginx writes them, always with three decimals: neither a port nor a number of bytes."""
_NAMED = re.compile(rb'\b(u?)rt="?(\d{1,4}\.\d{3}|-)')
_NUMBER = re.compile(r"\d{1,4}\.\d{1,6}")


def after_the_line(rest: bytes) -> float | None:
    """Read what follows the common and the combined format, in seconds.

    A whole number alone is Apache's `%D`. nginx's times stand alone, or as in its own examples:
    `rt=0.012 urt="0.011"`, of which that of the server behind counts.
    """
    words = rest.split()
    if not words:
        return None
    if len(words) == 1 and _MICROSECONDS.fullmatch(words[0]):
        return _in_bounds(int(words[0]) * MICRO)
    if named := dict(_NAMED.findall(rest)):
        told = named.get(b"u", named.get(b""))
        return 0.0 if told == b"-" else _in_bounds(float(told or 0))
    times = (found for word in words if (found := _SECONDS.fullmatch(word)))
    first = next(times, None)
    return _in_bounds(float(first[1])) if first else None


def of_nginx(found: dict[str, Any]) -> float | None:
    """Read nginx's variables: the time of the server behind counts before that of the request.

    The latter goes on until the client has it all. What no server behind had to answer took none.
    """
    behind = found.get(UPSTREAM)
    if behind is None:
        return of_number(found.get(REQUEST))
    times = _NUMBER.findall(str(behind))  # several where one server failed: "0.004, 0.012"
    return _in_bounds(sum(map(float, times)))


def of_number(value: object) -> float | None:
    """Read seconds, as a number or as its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return _in_bounds(float(value))
    except (ValueError, OverflowError):
        return None


def _in_bounds(seconds: float) -> float | None:
    return seconds if 0 <= seconds <= LONGEST_S else None
