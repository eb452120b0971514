"""Nearest valid names, for messages about names that don't exist."""

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 3
ALL_SHOWN = 12
LONGEST = 100
"""Characters of a name that are compared; finding what is near takes longer than in proportion."""


def nearest(wrong: str, valid: Iterable[str]) -> str:
    """Say which valid names come closest, or which there are at all."""
    names = sorted(valid)
    if not names:
        return "there is none to choose from"
    close = get_close_matches(wrong[:LONGEST].lower(), names, n=SHOWN, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:ALL_SHOWN])
    return f"choose from {shown}{' …' if len(names) > ALL_SHOWN else ''}"
