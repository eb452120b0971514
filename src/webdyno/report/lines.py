"""Text in lines of a terminal's width."""

from textwrap import wrap

from rich.text import Text

from webdyno.model import format as text

WIDTH = 100
"""Columns that a report takes at most, on however wide a terminal."""
INDENT = 2
GAP = 2
NO_BREAK = "\xa0"
"""Where lines are broken by textwrap, which heeds it; rich doesn't."""


def wrapped(said: str, width: int, style: str = "") -> Text:
    """Break text into lines, none between a number and its unit."""
    broken = [
        line
        for paragraph in said.splitlines()
        for line in wrap(text.bound(paragraph, NO_BREAK), max(width, 1), break_on_hyphens=False)
    ]
    return Text("\n".join(broken).replace(NO_BREAK, " "), style)
