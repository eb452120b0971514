"""Tables in prose: columns that were copied, and rates that are of different documents."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from statistics import median

from webdyno.audit.document import Document
from webdyno.audit.rules.rule import Rule, Seen, number
from webdyno.audit.tables import Column, Table
from webdyno.readers.output import Output

DIFFERENT = 1.2
"""Ratio of bytes per answer from which two columns count as different documents."""

ERROR_PAGE_SIZE = 0.03
TABLES_COMPARED = 4
"""Tables before the present one that it is compared with."""


def _nearby(document: Document) -> Iterator[tuple[Table, Table]]:
    """Give each table with those before it that have the same headings and the same key."""
    for place, table in enumerate(document.tables):
        for before in document.tables[max(0, place - TABLES_COMPARED) : place]:
            same = [each.heading for each in before.columns] == [
                each.heading for each in table.columns
            ]
            if same and before.columns[0].values == table.columns[0].values:
                yield before, table


def _copies(before: Table, table: Table) -> list[Column]:
    """Columns that two tables have in common while others of them differ."""
    measured = table.measured
    pairs = [
        (mine, theirs)
        for mine, theirs in zip(table.columns, before.columns, strict=True)
        if mine in measured
    ]
    equal = [mine for mine, theirs in pairs if mine.values == theirs.values]
    return equal if len(equal) < len(pairs) else []  # all equal: the table is shown twice


def _copied_between(document: Document) -> Iterator[Seen]:
    for before, table in _nearby(document):
        for column in _copies(before, table):
            what = f"column {_name(column)} has the same {number(len(column.cells))} figures as in "
            yield Seen(table.first_line, f"{what}the table in line {before.first_line}")


def _copied_within(document: Document) -> Iterator[Seen]:
    for table in document.tables:
        for a, b in combinations(table.measured, 2):
            if a.values == b.values:
                what = f"columns {_name(a)} and {_name(b)} have the same "
                yield Seen(table.first_line, f"{what}{number(len(a.cells))} figures")


def _rate_and_speed(document: Document) -> Iterator[tuple[Table, Table]]:
    """Give pairs of tables: requests per second, and kilobytes per second, of the same rows."""
    for before, table in _nearby(document):
        if {before.unit, table.unit} == {"rps", "kib_s"}:
            yield (before, table) if before.unit == "rps" else (table, before)


def _sizes(rates: Table, speeds: Table) -> dict[str, float]:
    """Bytes of an answer by column, from kilobytes and requests per second; no copied columns."""
    copied = {column.heading for column in _copies(rates, speeds)}
    sizes = {}
    for column in rates.measured:
        speed = speeds.named(column.heading)
        if speed is None or column.heading in copied or not column.heading:
            continue
        pairs = zip(speed.values, column.values, strict=True)
        rows = [1024 * kib / rps for kib, rps in pairs if kib and rps]
        # One document has one size whatever the load; where it hasn't, it isn't that table.
        if rows and max(rows) < DIFFERENT * min(rows):
            sizes[column.heading] = median(rows)
    return sizes


def _different_sizes(document: Document) -> Iterator[Seen]:
    for rates, speeds in _rate_and_speed(document):
        for (a, a_bytes), (b, b_bytes) in pairwise(_sizes(rates, speeds).items()):
            if max(a_bytes, b_bytes) > DIFFERENT * min(a_bytes, b_bytes):
                what = f"KB/s ÷ requests/s is {number(a_bytes)} bytes per answer for “{a}” and "
                what += f"{number(b_bytes)} for “{b}” (tables in lines {speeds.first_line} and "
                yield Seen(rates.first_line, f"{what}{rates.first_line})")


def _error_pages(document: Document) -> Iterator[Seen]:
    failing = [output for output in document.outputs if _only_errors(output)]
    for rates, speeds in _rate_and_speed(document):
        for name, size in _sizes(rates, speeds).items():
            for output in failing:
                page = output.answer_bytes or 0
                if abs(size - page) <= ERROR_PAGE_SIZE * page:
                    what = f"“{name}” has {number(size)} bytes per answer, like the run in line "
                    what += f"{output.first_line} that got nothing but error pages ({number(page)})"
                    yield Seen(rates.first_line, what)
                    break


def _only_errors(output: Output) -> bool:
    return bool(output.non_2xx and output.requests and output.non_2xx > 0.9 * output.requests)


def _name(column: Column) -> str:
    return f"“{column.heading}”" if column.heading else "without a heading"


_KEEP = "webdyno run writes summary.csv and the report from the same records: nothing is retyped."

RULES = (
    Rule(
        "copied-column",
        _copied_between,
        why="Two quantities are never equal to the last digit in every row: one column was "
        "pasted over, and what it should have shown is lost.",
        instead=_KEEP,
    ),
    Rule(
        "copied-column",
        _copied_within,
        why="Two measurements are never equal to the last digit in every row: one was pasted over.",
        instead=_KEEP,
    ),
    Rule(
        "different-documents",
        _different_sizes,
        why="The columns are about documents of different size: their rates can't be compared.",
        instead="webdyno duel nginx apache-prefork --site static --path /100KB.txt serves one "
        "document from both, and gives no verdict while the bodies differ.",
    ),
    Rule(
        "error-page-column",
        _error_pages,
        why="The whole column seems to have measured the error page.",
        instead="webdyno load URL --expect-status 200 --fail-on 'failures>0' notices at once.",
    ),
)
