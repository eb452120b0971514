"""Values as people write them behind `=`, and as messages show them."""

import tomllib

from webdyno.model.format import scalar
from webdyno.model.mistake import Mistake

LONGEST_SHOWN = 60


def written_value(text: str, flag: str) -> object:
    """Read the value of a flag as TOML has it: number, true, list; anything else is text.

    Raise Mistake for what is more than one value: tables, line breaks.
    """
    if not text.isprintable():
        raise Mistake(f"{flag!r:.{LONGEST_SHOWN}}: has a line break or another control character")
    try:
        # In brackets of a list nothing but one value can stand: no comment, no second key.
        found = tomllib.loads(f"values = [{text}]")
    except (ValueError, RecursionError):  # ValueError: also an integer of thousands of digits
        return text
    values = found["values"]
    if len(found) > 1 or len(values) != 1 or text.rstrip().endswith(","):
        return text
    (value,) = values
    if isinstance(value, dict):
        raise Mistake(f"{flag}: sets one value; name the key inside the table, KEY.NAME=VALUE")
    return value if isinstance(value, bool | int | float | str | list) else text


def shown_value(value: object) -> str:
    """Write a value for a message: as in TOML, and not too long."""
    if isinstance(value, bool):
        return scalar(value)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list) and not value:
        return "an empty list"
    try:
        shown = repr(value)
    except RecursionError:
        return "something nested deeply"
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]} …"
