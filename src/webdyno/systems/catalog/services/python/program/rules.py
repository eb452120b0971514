"""What the apps here take from clients, and what they refuse."""

import re
from typing import Any

HIGHEST = 2**31 - 1
"""The largest number in a column of PostgreSQL's type integer."""
NAME = re.compile(r"[^\x00\ud800-\udfff]{1,100}")
"""Text that PostgreSQL can keep."""


def whole(text: str | None, highest: int) -> int:
    """Read a whole number from 1 to `highest`; give 1 for what isn't one."""
    try:
        return min(max(int(text or ""), 1), highest)
    except ValueError:
        return 1


def fault_of(item: Any) -> str | None:
    """Say what is wrong with an item from a client, if anything is."""
    if not isinstance(item, dict):
        return "an item is a JSON object"
    name, price = item.get("name"), item.get("price")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return "name should have 1 to 100 characters"
    if type(price) is not int or not 0 <= price <= HIGHEST:
        return "price should be a whole number, 0 or more"
    return None
