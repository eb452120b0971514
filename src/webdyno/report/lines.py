"""Text in lines of a terminal's width."""

from textwrap import wrap

from rich.table import Table
from rich.text import Text

from webdyno.model import format as text
from webdyno.report.conditions import Facts

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


def fact_lines(facts: Facts, width: int) -> Table:
    """Set terms beside what is to be said of them."""
    beside = width - max(len(term) for term, _ in facts) - GAP
    grid = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for term, said in facts:
        grid.add_row(Text(term, style="dim"), wrapped(said, beside))
    return grid
