"""Figures in JSON that somebody else wrote: of the right kind and in bounds, or absent."""

from collections.abc import Mapping
from typing import Any

MOST = 1e15
"""No figure is larger; JSON would have `Infinity` as well."""


def amount(value: object) -> float | None:
    """Give a measurement."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < MOST else None


def whole_amount(value: object) -> int | None:
    """Give a count; some tools write counts with decimals."""
    number = amount(value)
    return None if number is None else int(number)


def whole_amounts(found: object) -> dict[str, int]:
    """Give name → count, of an object."""
    rows = found if isinstance(found, dict) else {}
    return {
        name: number for name, value in rows.items() if (number := whole_amount(value)) is not None
    }


def inside(found: Mapping[str, Any], *path: str) -> object:
    """Give what stands at the end of a path of keys; None where one is missing."""
    value: object = found
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def scaled(value: object, scale: float) -> float | None:
    """Give a measurement in another unit."""
    number = amount(value)
    return None if number is None else number * scale
