"""Numbers as tools print them and as people retype them: 1234.5, 1,234.5, 1.234 as a count, 1234,5.

All expressions are bounded, so that no line makes a number that is no number any more, and none
matches the beginning of a longer number.
"""

import math
import re

_ENDS = r"(?![.,]?\d)"

NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d{1,20})?|\d{1,18}(?:\.\d{0,20}|,\d{1,20})?)" + _ENDS
"""A measurement: a comma separates thousands before exactly three digits, else decimals."""

COUNT = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,6}|[1-9]\d{0,2}(?:\.\d{3}){1,6}|\d{1,20})" + _ENDS
"""A count: it has no decimals, so a point can only separate thousands."""

_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_GROUPED_COUNT = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")


def as_float(text: str | None) -> float | None:
    """Read a measurement; None where there is none."""
    text = text or ""
    text = text.replace(",", "") if _GROUPED.fullmatch(text) else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_count(text: str | None) -> int | None:
    """Read a count exactly; None where there is none."""
    text = text or ""
    if _GROUPED_COUNT.fullmatch(text):
        text = re.sub(r"[.,]", "", text)
    if text.isdecimal():
        return int(text)  # a float would round what is above 2 to the 53rd
    number = as_float(text)
    return None if number is None else int(number)
