"""Numbers as tools print them and people retype them, figures in JSON, and what a URL says.

All expressions are bounded, so that no line makes a number that is no number any more, and none
matches the beginning of a longer number.
"""

import re
from collections.abc import Mapping
from typing import Any, Self, TypeVar

_ENDS = r"(?![.,]?\d)"

NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d{1,20})?|\d{1,18}(?:\.\d{0,20}|,\d{1,20})?)" + _ENDS
"""A measurement, 1234.5 or 1,234.5 or 1234,5: a comma separates thousands before exactly three
digits, else decimals."""

COUNT = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,6}|[1-9]\d{0,2}(?:\.\d{3}){1,6}|\d{1,20})" + _ENDS
"""A count: it has no decimals, so a point can only separate thousands."""

MOST_IN_TEXT = 1e20
"""No figure in a cell is larger, so that sums and products of them are numbers."""
DIGITS = 21
"""Most digits of such a number."""

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
    """Return a measurement in JSON, times a unit; None for what is none, or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * scale if 0 <= value < MOST else None


Key = TypeVar("Key")
Value = TypeVar("Value")


def known(values: Mapping[Key, Value | None]) -> dict[Key, Value]:
    """Return the entries that have a value."""
    return {key: value for key, value in values.items() if value is not None}


class Fields(dict[str, Any]):
    """An object in JSON that anybody may have made: what isn't there, or is none, is None."""

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the fields of an object; none of anything else."""
        return cls(value if isinstance(value, dict) else {})

    def inside(self, *path: str) -> "Fields":
        """Return the object at the end of a path of keys; an empty one where there is none."""
        inner = self
        for key in path:
            inner = Fields.of(inner.get(key))
        return inner

    def objects(self, key: str) -> "list[Fields]":
        """Return the objects of a list."""
        value = self.get(key)
        return [Fields.of(each) for each in value] if isinstance(value, list) else []

    def amount(self, *path: str, scale: float = 1) -> float | None:
        """Return a measurement, times a unit."""
        *outer, key = path
        return amount(self.inside(*outer).get(key), scale)

    def count(self, *path: str) -> int | None:
        """Return a count; some tools write counts with decimals."""
        number = self.amount(*path)
        return None if number is None else int(number)

    def counts(self, key: str) -> dict[str, int]:
        """Return the counts of an object by name."""
        rows = self.inside(key)
        return known({name: rows.count(name) for name in rows})

    def counts_by_status_group(self, key: str) -> dict[str, int]:
        """Return the responses by group, such as `2xx`, by a key with `{}` for its digit."""
        groups = {f"{digit}xx": self.count(key.format(digit)) for digit in "12345"}
        return {group: responses for group, responses in groups.items() if responses}

    def amounts_at(self, names: Mapping[float, str], scale: float = 1) -> dict[float, float]:
        """Return the measurements under some names, such as percentiles."""
        return known({key: self.amount(name, scale=scale) for key, name in names.items()})


def url_figures(url: object) -> dict[str, Any]:
    """Return the host, port and path of a URL, as Output calls them, as far as it says them."""
    match = _URL.match(url.strip("\"'`")) if isinstance(url, str) else None
    if not match:
        return {}
    said = {name: match[name].strip("[]") for name in ("host", "path") if match[name]}
    port = match["port"] or ("443" if match["scheme"] == "https" else None)
    return said | ({"port": int(port)} if port else {})
