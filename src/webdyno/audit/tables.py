"""Tables of figures in prose: columns of numbers between tabs, bars, commas or wide gaps."""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Literal

from webdyno.formats.text import NumberedLine

Unit = Literal["rps", "kib_s"]

FEWEST_ROWS = 3
FEWEST_UNDER_HEADINGS = 2
"""Rows that are a table where a line of as many headings stands right above them."""

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
_FRAME = str.maketrans(dict.fromkeys("│┃║┆┊", "|") | dict.fromkeys("─━═┼┬┴├┤┌┐└┘╔╗╚╝╠╣╬╪╞╡", "-"))
"""Frames that are drawn with lines, as the signs that stand for them elsewhere."""

_RULE_LINE = re.compile(r"[-=+|: \t]+$")
_MARKS = re.compile(r"^[*_`~]{1,3}|[*_`~]{1,3}$")
_NUMBER = re.compile(
    r"[<~≈]?\s*(\d{1,3}(?: \d{3}){1,5}(?:[.,]\d{1,20})?|\d[\d,.]{0,20})"
    r"\s*(?:\(?[a-zA-Zµ%/#\[\]]{1,12}\)?)?$"
)
_DECIMAL_COMMA = re.compile(r"\d,(?:\d{1,2}|\d{4,})(?!\d)")
_DECIMAL_POINT = re.compile(r"\d\.(?:\d{1,2}|\d{4,})(?!\d)")
_STRONG = re.compile(r"[\t|]")


@dataclass(frozen=True)
class TextColumn:
    """A column of a table as it was written."""

    heading: str
    cells: tuple[str, ...]
    decimal_comma: bool = False

    @cached_property
    def values(self) -> list[float | None]:
        """Its figures; None where a cell has none."""
        return [as_number(cell, decimal_comma=self.decimal_comma) for cell in self.cells]

    @cached_property
    def figures(self) -> list[float]:
        return [value for value in self.values if value is not None]

    @cached_property
    def is_measured(self) -> bool:
        """Whether it can only be measurements: neither one setting in all rows, nor round."""
        if None in self.values or len(set(self.values)) < FEWEST_VALUES:
            return False
        digits = (re.sub(r"\D", "", cell).strip("0") for cell in self.cells)
        return median(map(len, digits)) >= DIGITS

    @cached_property
    def is_counted(self) -> bool:
        return None not in self.values and all(value.is_integer() for value in self.figures)


@dataclass(frozen=True)
class TextTable:
    """A table with rows of figures."""

    first_line: int
    last_line: int
    columns: tuple[TextColumn, ...]
    unit: Unit | None
    """What its title says that the figures are."""
    row_lines: tuple[int, ...] = ()

    @property
    def measured_columns(self) -> list[TextColumn]:
        """Its columns of measurements; the first column is the key."""
        return [column for column in self.columns[1:] if column.is_measured]

    @cached_property
    def is_list(self) -> bool:
        """Whether it is a list of labels with figures, as tools print them, and no table."""
        labels, *others = self.columns
        return len(others) == 1 and not labels.heading and not any(labels.figures)

    def with_rows_as_columns(self) -> "TextTable | None":
        """Return the table turned; None where it has no headings or many rows."""
        labels, *variants = self.columns
        if len(labels.cells) > MOST_COLUMNS or not all(variant.heading for variant in variants):
            return None
        rows = zip(*(variant.cells for variant in variants), strict=True)
        columns = [
            TextColumn(label, cells, labels.decimal_comma)
            for label, cells in zip(labels.cells, rows, strict=True)
        ]
        return replace(
            self,
            columns=(TextColumn("", tuple(variant.heading for variant in variants)), *columns),
            row_lines=(self.first_line,) * len(variants),
        )

    def column_headed(self, heading: re.Pattern[str], *, key: bool = True) -> TextColumn | None:
        """Return the first column of such a heading; `key`: it may be the first of all."""
        columns = self.columns if key else self.columns[1:]
        return next((each for each in columns if heading.search(each.heading)), None)


@dataclass
class TableReader:
    """Finds tables in lines that pass by."""

    _header: tuple[int, list[str]] | None = None
    _ruled: bool = False
    """Whether a line was drawn below the header."""
    _rows: list[list[str]] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _above: list[NumberedLine] = field(default_factory=list)

    def take(self, line: NumberedLine) -> list[TextTable]:
        """Look at the next line; return the table that it ends."""
        text = line.text.translate(_FRAME)
        cells = split(text)
        if len(cells) >= 2 and self._is_row(text, cells):
            return self._row(line, cells)
        if text and _RULE_LINE.match(text) and (len(cells) >= 2 or self._header or self._rows):
            self._ruled = self._header is not None
            return []
        if self._ruled and self._header and len(self._header[1]) == len(cells):
            return []  # a row of words below the headings
        ended = self.end()
        self._header = (line.number, cells) if len(cells) >= 2 else None
        if line.text:
            self._above = [*self._above[1 - TITLE_WITHIN :], line]
        return ended

    def _is_row(self, text: str, cells: list[str]) -> bool:
        """Whether a line is a row: all figures, or with text in it where columns are sure."""
        figures = [as_number(cell) is not None for cell in cells[1:]]
        if all(figures):
            return True
        width = len(self._header[1]) if self._header else len(self._rows[0]) if self._rows else 0
        return any(figures) and width == len(cells) and _STRONG.search(text) is not None

    def _row(self, line: NumberedLine, cells: list[str]) -> list[TextTable]:
        other_table = self._rows and len(self._rows[0]) != len(cells)
        ended = self.end() if other_table else []
        if len(self._rows) < MOST_ROWS:
            self._rows.append(cells)
            self._lines.append(line.number)
        else:
            self._lines[-1] = line.number
        return ended

    def end(self) -> list[TextTable]:
        """Return the table that was under way, if it is one."""
        rows, self._rows = self._rows, []
        lines, self._lines = self._lines, []
        header, self._header, self._ruled = self._header, None, False
        width = len(rows[0]) if rows else 0
        headed = header if header and len(header[1]) == width else None
        if len(rows) < (FEWEST_UNDER_HEADINGS if headed else FEWEST_ROWS):
            return []
        names = headed[1] if headed else [""] * width
        top = header[0] if header else lines[0]
        comma = any(_DECIMAL_COMMA.search(cell) for row in rows for cell in row[1:]) and not any(
            _DECIMAL_POINT.search(cell) for row in rows for cell in row[1:]
        )
        columns = zip(names, zip(*rows, strict=True), strict=True)
        table = TextTable(
            first_line=top,
            last_line=lines[-1],
            columns=tuple(TextColumn(name, tuple(cells), comma) for name, cells in columns),
            unit=self._unit(top, names),
            row_lines=tuple(lines),
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
    """Return a line's cells; at most one of a line that is no row."""
    if "\t" in text:
        cells = text.split("\t")
    elif "|" in text:
        cells = text.strip("|").split("|")
    elif text.count(";") >= 2:
        cells = text.split(";")
    elif text.count(",") >= 2:
        cells = text.split(",")
    elif "  " in text:
        cells = _WIDE.split(text)
    else:
        return []
    return [_MARKS.sub("", cell.strip()) for cell in cells] if len(cells) <= MOST_COLUMNS else []


def as_number(cell: str, *, decimal_comma: bool = False) -> float | None:
    """Read a cell; a short unit may stand behind the number.

    Of a comma and a point, the one that its table uses for decimals is that.
    """
    match = _NUMBER.match(cell)
    if not match:
        return None
    digits = match[1].replace(" ", "")
    if decimal_comma or ("." not in digits and _DECIMAL_COMMA.search(digits)):
        digits = digits.replace(".", "").replace(",", ".")
    digits = digits.replace(",", "")
    try:
        return float(digits)
    except ValueError:  # a date or an address: 1.2.3
        return None
