"""Tables of figures in prose: columns of numbers between tabs, bars, commas or wide gaps."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Literal

from webdyno.readers.lines import Line

Unit = Literal["rps", "kib_s"]

FEWEST_ROWS = 3
FEWEST_VALUES = 3
"""Different figures in a column before its equality with another means anything."""

DIGITS = 4
"""Digits that most figures of it have: round ones agree by chance, measured ones don't."""

MOST_ROWS = 1000
"""Rows of a table that are kept; the rest is passed over."""
MOST_COLUMNS = 50
TITLE_WITHIN = 4
"""Lines above a table in which its title can stand."""

_UNITS: tuple[tuple[Unit, re.Pattern[str]], ...] = (
    ("kib_s", re.compile(r"\b[Kk](?:i?[Bb]|[Bb]ytes)\s*(?:/|per\s)\s*s", re.ASCII)),
    ("rps", re.compile(r"#/s|\brps\b|\breq(?:uest)?s?\s*(?:/|per\b)", re.IGNORECASE)),
)
_WIDE = re.compile(r" {2,}")
_RULE_LINE = re.compile(r"[-=+|: \t]+$")
_NUMBER = re.compile(r"\s*([\d,]{1,15}(?:\.\d{1,20})?)\s*(?:[a-zA-Z%/#\[\]]{1,12})?\s*$")


@dataclass(frozen=True)
class Column:
    """A column of figures as they were written."""

    heading: str
    cells: tuple[str, ...]

    @cached_property
    def values(self) -> list[float | None]:
        """Its figures; None where a cell has none."""
        return [as_number(cell) for cell in self.cells]

    @cached_property
    def is_measured(self) -> bool:
        """Whether it can only be measurements: neither one setting in all rows, nor round."""
        if None in self.values or len(set(self.values)) < FEWEST_VALUES:
            return False
        digits = (re.sub(r"\D", "", cell).strip("0") for cell in self.cells)
        return median(map(len, digits)) >= DIGITS


@dataclass(frozen=True)
class Table:
    """A table with rows of figures."""

    first_line: int
    columns: tuple[Column, ...]
    unit: Unit | None
    """What its title says that the figures are."""

    @property
    def measured(self) -> list[Column]:
        """Its columns of measurements; the first column is the key."""
        return [column for column in self.columns[1:] if column.is_measured]

    def named(self, heading: str) -> Column | None:
        """Give the column with this heading."""
        return next((each for each in self.columns if each.heading == heading), None)


@dataclass
class TableReader:
    """Finds tables in lines that pass by."""

    _header: tuple[int, list[str]] | None = None
    _rows: list[list[str]] = field(default_factory=list)
    _first_line: int = 0
    _above: list[Line] = field(default_factory=list)

    def take(self, line: Line) -> list[Table]:
        """Look at the next line; gives the table that it ends."""
        cells = split(line.text)
        if len(cells) >= 2 and all(as_number(cell) is not None for cell in cells[1:]):
            return self._row(line, cells)
        if len(cells) >= 2 and _RULE_LINE.match(line.text):
            return []
        ended = self.end()
        self._header = (line.number, cells) if len(cells) >= 2 else None
        if line.text:
            self._above = [*self._above[1 - TITLE_WITHIN :], line]
        return ended

    def _row(self, line: Line, cells: list[str]) -> list[Table]:
        other_table = self._rows and len(self._rows[0]) != len(cells)
        ended = self.end() if other_table else []
        if not self._rows:
            self._first_line = line.number
        if len(self._rows) < MOST_ROWS:
            self._rows.append(cells)
        return ended

    def end(self) -> list[Table]:
        """Give the table that was under way, if it is one."""
        rows, self._rows = self._rows, []
        header, self._header = self._header, None
        if len(rows) < FEWEST_ROWS:
            return []
        width = len(rows[0])
        names = header[1] if header and len(header[1]) == width else [""] * width
        top = header[0] if header else self._first_line
        columns = zip(names, zip(*rows, strict=True), strict=True)
        table = Table(
            first_line=top,
            columns=tuple(Column(name, tuple(cells)) for name, cells in columns),
            unit=self._unit(top, names),
        )
        return [table]

    def _unit(self, top: int, names: list[str]) -> Unit | None:
        near = [line.text for line in self._above if top - 2 * TITLE_WITHIN < line.number <= top]
        for text in (" ".join(names), *reversed(near)):
            for unit, pattern in _UNITS:
                if pattern.search(text):
                    return unit
        return None


def split(text: str) -> list[str]:
    """Split a line into cells; a line that is no row gives at most one."""
    if "\t" in text:
        cells = text.split("\t")
    elif "|" in text:
        cells = text.strip("|").split("|")
    elif text.count(",") >= 2:
        cells = text.split(",")
    elif "  " in text:
        cells = _WIDE.split(text)
    else:
        return []
    return [cell.strip() for cell in cells] if len(cells) <= MOST_COLUMNS else []


def as_number(cell: str) -> float | None:
    """Read a cell; a short unit may stand behind the number."""
    found = _NUMBER.match(cell)
    digits = found[1].replace(",", "") if found else ""
    return float(digits) if digits.strip(".") else None
