"""Tables for other programs as CSV, in which no text of others is a formula to a spreadsheet."""

import csv
from collections.abc import Iterable
from io import StringIO

_BEGIN_FORMULAS = tuple("=+-@\t\r＝＋－＠")  # noqa: RUF001 (spreadsheets know the wide ones, too)


def csv_sheet(rows: Iterable[Iterable[object]]) -> str:
    """Return rows of cells as text; what would be a formula has a `'` before it."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_shown, row) for row in rows)
    return text.getvalue()


def _shown(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_BEGIN_FORMULAS) or _is_number(cell):
        return cell
    return f"'{cell}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
