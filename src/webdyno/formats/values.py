"""Numbers as tools print them and people retype them, figures in JSON, and what a URL says.

All expressions are bounded, so that no line makes a number that is no number any more, and none
matches the beginning of a longer number.
"""

import re
from collections.abc import Mapping
from typing import Any

_ENDS = r"(?![.,]?\d)"

NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d{1,20})?|\d{1,18}(?:\.\d{0,20}|,\d{1,20})?)" + _ENDS
"""A measurement, 1234.5 or 1,234.5 or 1234,5: a comma separates thousands before exactly three
digits, else decimals."""

COUNT = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,6}|[1-9]\d{0,2}(?:\.\d{3}){1,6}|\d{1,20})" + _ENDS
"""A count: it has no decimals, so a point can only separate thousands."""

MOST_IN_TEXT = 1e20
"""No figure in a cell is larger, so that sums and products of them are numbers."""
DIGITS = 21
"""Which such a number has."""

MOST = 1e15
"""No figure in JSON is larger; JSON would have `Infinity` as well."""

_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_GROUPED_COUNT = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
_URL = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[^/:\s\[\]]{1,255})"
    r"(?::(?P<port>\d{1,5})(?!\d))?(?P<path>/\S*)?"
)


def as_float(text: str | None) -> float | None:
    """Read a measurement; None where there is none."""
    text = text or ""
    text = text.replace(",", "") if _GROUPED.fullmatch(text) else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < MOST_IN_TEXT else None  # neither is NaN


def as_count(text: str | None) -> int | None:
    """Read a count exactly; None where there is none."""
    text = text or ""
    if _GROUPED_COUNT.fullmatch(text):
        text = re.sub(r"[.,]", "", text)
    if text.isdecimal() and len(text) < DIGITS:
        return int(text)  # a float would round what is above 2 to the 53rd
    number = as_float(text)
    return None if number is None else int(number)


def amount(value: object, scale: float = 1) -> float | None:
    """Give a measurement in JSON, times a unit; None for what is none, or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * scale if 0 <= value < MOST else None


def whole_amount(value: object) -> int | None:
    """Give a count in JSON; some tools write counts with decimals."""
    number = amount(value)
    return None if number is None else int(number)


def by_status_group(fields: Mapping[str, object], key: str) -> dict[str, int]:
    """Give the responses of each group of statuses, such as `2xx`, that has any.

    `key`: what `fields` call a group, whose digit is in the place of `{}`.
    """
    groups = ((f"{digit}xx", whole_amount(fields.get(key.format(digit)))) for digit in "12345")
    return {group: responses for group, responses in groups if responses}


def whole_amounts(given: object) -> dict[str, int]:
    """Give name → count, of an object in JSON."""
    rows = given if isinstance(given, dict) else {}
    return {
        name: number for name, given in rows.items() if (number := whole_amount(given)) is not None
    }


def amounts_at(given: object, names: Mapping[float, str], scale: float = 1) -> dict[float, float]:
    """Give the measurements that an object in JSON has under some names, such as percentiles."""
    rows = given if isinstance(given, dict) else {}
    return {
        key: number
        for key, name in names.items()
        if (number := amount(rows.get(name), scale)) is not None
    }


def inside(parsed: Mapping[str, Any], *path: str) -> object:
    """Give what stands at the end of a path of keys; None where one is missing."""
    value: object = parsed
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def url_figures(url: object) -> dict[str, Any]:
    """Give the host, port and path of a URL, as Output calls them, as far as it says them."""
    match = _URL.match(url.strip("\"'`")) if isinstance(url, str) else None
    if not match:
        return {}
    said = {name: match[name].strip("[]") for name in ("host", "path") if match[name]}
    port = match["port"] or ("443" if match["scheme"] == "https" else None)
    return said | ({"port": int(port)} if port else {})
