"""Times as logs write them, in seconds since 1970."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from webdyno.workload.formats.access import NoRequest

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
"""Up to which number since 1970 a unit is meant: seconds, ms, µs, ns."""
_STAMP = re.compile(
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
)


@lru_cache(maxsize=1024)
def common_time(text: bytes) -> float:
    """Read 22/Nov/2026:13:55:36 +0100, in UTC unless it names a zone; raise Unreadable."""
    found = _COMMON_TIME.fullmatch(text)
    month = _MONTHS.get(found[2]) if found else None
    if found is None or month is None:
        raise NoRequest("has no time such as 22/Nov/2026:13:55:36 +0100")
    day, year, hour, minute, second = (int(found[it]) for it in (1, 3, 4, 5, 6))
    ahead = timedelta(hours=int(found[9] or 0), minutes=int(found[10] or 0))
    try:
        zone = timezone(-ahead if found[8] == b"-" else ahead)
        at = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
        return at.timestamp() + float(found[7] or 0)
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None


def moment(value: object) -> float:
    """Read a time: a number since 1970, ISO 8601, or as the common format has it.

    The number is of seconds, milliseconds, microseconds or nanoseconds, by its size. Raise
    ValueError where it is none.
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
    """Give the first time in what stands before a line, such as docker's; None without one."""
    found = _STAMP.search(text)
    try:
        return moment_of(found[0].decode().replace(",", ".")) if found else None
    except ValueError:
        return None


def moment_of(text: str) -> float:
    """Read a time in ISO 8601, its day also as 2026/11/22, in UTC unless it names a zone.

    Raise ValueError where it is none.
    """
    at = datetime.fromisoformat(text.replace("/", "-"))
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
