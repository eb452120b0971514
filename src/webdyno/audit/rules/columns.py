"""Tables in prose: columns that were copied, and throughputs that are of different documents."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from statistics import median

from webdyno.audit.reader import AuditedText
from webdyno.audit.rules import AuditRule, Violation, numeral, rule
from webdyno.audit.tables import TextColumn, TextTable, as_number
from webdyno.formats import Output

RULES: list[AuditRule[AuditedText]] = []

DIFFERENT = 1.2
"""Ratio of bytes per response from which two columns count as different documents."""

ERROR_PAGE_SIZE = 0.03
TABLES_COMPARED = 4
"""Tables before the present one that it is compared with."""

_SAME_DOCUMENT = (
    "webdyno compare nginx apache-prefork --site static --path /100KB.txt serves one document from "
    "both, and gives no verdict while the bodies differ."
)
_KEEP = "webdyno run writes summary.csv and the report from the same records: nothing is retyped."


def _nearby(document: AuditedText) -> Iterator[tuple[TextTable, TextTable]]:
    """Return each table with those before it that have the same headings and the same key."""
    tables = document.of(TextTable)
    for place, table in enumerate(tables):
        headings = [each.heading for each in table.columns]
        for before in tables[max(0, place - TABLES_COMPARED) : place]:
            same = [each.heading for each in before.columns] == headings
            if same and before.columns[0].values == table.columns[0].values:
                yield before, table


def _copies(before: TextTable, table: TextTable) -> list[TextColumn]:
    """Columns that two tables have in common while others of them differ."""
    measured = table.measured_columns
    pairs = [
        (mine, theirs)
        for mine, theirs in zip(table.columns, before.columns, strict=True)
        if mine in measured and not _both_count(mine, theirs)
    ]
    equal = [mine for mine, theirs in pairs if mine.values == theirs.values]
    return equal if len(equal) < len(pairs) else []  # all equal: the table is shown twice


@rule(
    RULES,
    "failures-column",
    why="Failed requests are cheap or late, and the row's throughput and latency are of what "
    "is left.",
    instead="webdyno load URL --expect-status 200 --fail-if 'failures > 0' counts each kind of "
    "failure apart.",
)
def failures_column(document: AuditedText) -> Iterator[Violation]:
    for table in _both_ways(document):
        requests = table.column_headed(_REQUESTS, key=False)
        if not requests and not table.column_headed(_MEASURED):
            continue
        for column in table.columns[1:]:
            if not _FAILURES.search(column.heading) or column is requests:
                continue
            if not requests:
                yield from _of_unknown(table, column)
            bad = [
                (place, share)
                for place, value in enumerate(column.values)
                if value and (share := _share(column, requests, place, value)) is not None
                if share > TOLERATED
            ]
            if bad:
                place, share = max(bad, key=lambda each: each[1])
                what = f"{_name(column)} is {column.cells[place]} for {_row_name(table, place)}: "
                what += f"{numeral(100 * share)}% failed"
                if len(bad) > 1:
                    what += f", and more than 0.1% in {numeral(len(bad) - 1)} other rows"
                yield Violation(table.row_lines[place], what)


def _of_unknown(table: TextTable, column: TextColumn) -> Iterator[Violation]:
    """Check rows that give throughput, and no number of requests."""
    rate = table.column_headed(_RATE)
    if "%" in column.heading or not rate:
        return
    for place, (failed, rps) in enumerate(zip(column.values, rate.values, strict=True)):
        cell = column.cells[place]
        if failed and rps and "%" not in cell and not _SCALED.search(rate.cells[place]):
            share = failed / (rps * MINUTE_S)
            what = f"{_name(column)} is {cell} for {_row_name(table, place)}, of how "
            what += f"many requests is not stated: {numeral(100 * share)}% of a minute's"
            yield Violation(table.row_lines[place], what, serious=share > TOLERATED)


def _share(
    column: TextColumn, requests: TextColumn | None, place: int, value: float
) -> float | None:
    if "%" in column.heading or "%" in column.cells[place]:
        return value / 100
    whole = requests.values[place] if requests else None
    return value / whole if whole and value <= whole else None


@rule(
    RULES,
    "status-column",
    why="Error pages are short and cheap: the times in these rows are theirs, not the page's.",
    instead="webdyno load URL --expect-status 200 --fail-if 'failures > 0' notices at once.",
)
def status_column(document: AuditedText) -> Iterator[Violation]:
    for table in document.of(TextTable):
        column = table.column_headed(_STATUS)
        figures = column.figures if column else []
        if not column or not figures or not all(v.is_integer() and 100 <= v < 600 for v in figures):
            continue
        bad = [place for place, value in enumerate(column.values) if value and value // 100 != 2]
        if len(bad) > TOLERATED * len(figures):
            codes = ", ".join(sorted({column.cells[place] for place in bad})[:5])
            what = f"{numeral(len(bad))} of {numeral(len(figures))} rows of {_name(column)} "
            yield Violation(table.row_lines[bad[0]], f"{what}are no 2xx status ({codes})")


@rule(
    RULES,
    "different-documents",
    why="The rows are about responses of different size: their throughputs can't be compared.",
    instead=_SAME_DOCUMENT,
)
def documents_differ_by_row(document: AuditedText) -> Iterator[Violation]:
    for table in document.of(TextTable):
        requests = table.column_headed(_REQUESTS, key=False)
        received = table.column_headed(_BYTES, key=False)
        if not requests or not received or as_number(table.columns[0].cells[0]) is not None:
            continue
        pairs = zip(requests.values, received.values, strict=True)
        sizes = [
            (place, total / count)
            for place, (count, total) in enumerate(pairs)
            if count and total and count >= FEWEST_REQUESTS
        ]
        for (a, a_bytes), (b, b_bytes) in pairwise(sizes):
            if max(a_bytes, b_bytes) > DIFFERENT * min(a_bytes, b_bytes):
                what = f"bytes ÷ requests is {numeral(a_bytes)} for {_row_name(table, a)} and "
                what += f"{numeral(b_bytes)} for {_row_name(table, b)}"
                yield Violation(table.row_lines[b], what)


def _row_name(table: TextTable, place: int) -> str:
    return f"“{table.columns[0].cells[place]}”"


TOLERATED = 0.001
"""Share of requests that may fail before throughput is not to be believed."""

MINUTE_S = 60
"""Few runs in a table are longer."""

FEWEST_REQUESTS = 100
"""Fewer in a row are no run."""

_COUNT = re.compile(
    r"requests|responses|replies|answers|samples|transactions|hits|sent|received|completed|total|"
    r"count|\b2xx\b|\bok\b|success|anfragen|antworten|requêtes|réponses",
    re.IGNORECASE,
)
_FAILURES = re.compile(
    r"fail|error|\b(?:non-?2xx|[45]xx|KO|timeouts?|timed out|refused|dropped)\b|fehler|échou|"
    r"erreur",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"^(?:# ?|total[ _]|number of |num[ _])?(?:req(?:uest)?s?|samples|transactions)"
    r"(?:[ _](?:count|total|sent|done))?$",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"^(?:total )?(?:req(?:uest)?s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?|[rqt]ps|throughput \(req/s\))$",
    re.IGNORECASE,
)
_SCALED = re.compile(r"\d\s?[kKM]")
_MEASURED = re.compile(
    r"req(?:uest)?s?\s*(?:/|per)\s*s|\b[rqt]ps\b|latenc|throughput|\bp\d\d\b|\bms\b|response time",
    re.IGNORECASE,
)
"""Headings of load tests' figures: in other tables "fail" may be anything."""

_BYTES = re.compile(
    r"^(?:total[ _]|received[ _])?bytes(?:[ _](?:read|received|total|in))?$", re.IGNORECASE
)
_STATUS = re.compile(
    r"^(?:http[ _-]?)?(?:status|response)?[ _-]?(?:status|code)(?:[ _-]code)?s?$", re.IGNORECASE
)


@rule(
    RULES,
    "copied-column",
    why="Two quantities are never equal to the last digit in every row: one column was "
    "pasted over, and what it should have shown is lost.",
    instead=_KEEP,
)
def copied_between_tables(document: AuditedText) -> Iterator[Violation]:
    for before, table in _nearby(document):
        for column in _copies(before, table):
            what = f"column {_name(column)} has the same {numeral(len(column.cells))} figures as "
            what += f"in the table in line {before.first_line}"
            yield Violation(table.first_line, what)


@rule(
    RULES,
    "copied-column",
    why="Two measurements are never equal to the last digit in every row: one was pasted over.",
    instead=_KEEP,
)
def copied_within_table(document: AuditedText) -> Iterator[Violation]:
    for table in document.of(TextTable):
        for a, b in combinations(table.measured_columns, 2):
            if a.values == b.values and not _both_count(a, b):
                what = f"columns {_name(a)} and {_name(b)} have the same "
                yield Violation(table.first_line, f"{what}{numeral(len(a.cells))} figures")


def _both_count(a: TextColumn, b: TextColumn) -> bool:
    """Whether both count the same requests: sent and received ones, say, of which none failed."""
    return all(
        each.is_counted and (not each.heading or _COUNT.search(each.heading)) for each in (a, b)
    )


def _rate_and_speed(document: AuditedText) -> Iterator[tuple[TextTable, TextTable]]:
    """Return pairs of tables: requests per second, and kilobytes per second, of the same rows."""
    for before, table in _nearby(document):
        if {before.unit, table.unit} == {"rps", "kib_s"}:
            yield (before, table) if before.unit == "rps" else (table, before)


def _sizes(rates: TextTable, speeds: TextTable) -> dict[str, float]:
    """Bytes of a response by column, from kilobytes and requests per second; no copied columns."""
    copied = {column.heading for column in _copies(rates, speeds)}
    sizes = {}
    for column in rates.measured_columns:
        speed = next((each for each in speeds.columns if each.heading == column.heading), None)
        if speed is None or column.heading in copied or not column.heading:
            continue
        pairs = zip(speed.values, column.values, strict=True)
        rows = [1024 * kib / rps for kib, rps in pairs if kib and rps]
        # One document has one size whatever the load; where it hasn't, it isn't that table.
        if rows and max(rows) < DIFFERENT * min(rows):
            sizes[column.heading] = median(rows)
    return sizes


@rule(
    RULES,
    "different-documents",
    why="The columns are about documents of different size: their throughputs can't be compared.",
    instead=_SAME_DOCUMENT,
)
def documents_differ_by_column(document: AuditedText) -> Iterator[Violation]:
    for rates, speeds in _rate_and_speed(document):
        for (a, a_bytes), (b, b_bytes) in pairwise(_sizes(rates, speeds).items()):
            if max(a_bytes, b_bytes) > DIFFERENT * min(a_bytes, b_bytes):
                what = f"KB/s ÷ requests/s is {numeral(a_bytes)} bytes per response for “{a}” and "
                what += f"{numeral(b_bytes)} for “{b}” (tables in lines {speeds.first_line} and "
                yield Violation(rates.first_line, f"{what}{rates.first_line})")


@rule(
    RULES,
    "error-page-column",
    why="The whole column seems to have measured the error page.",
    instead="webdyno load URL --expect-status 200 --fail-if 'failures > 0' notices at once.",
)
def error_page_column(document: AuditedText) -> Iterator[Violation]:
    failing = [
        output
        for output in document.of(Output)
        if output.non_2xx and output.requests and output.non_2xx > 0.9 * output.requests
    ]
    for rates, speeds in _rate_and_speed(document):
        for name, size in _sizes(rates, speeds).items():
            for output in failing:
                page = output.response_bytes or 0
                if abs(size - page) <= ERROR_PAGE_SIZE * page:
                    what = f"“{name}” has {numeral(size)} bytes per response, like the run in line "
                    what += f"{output.first_line} that got nothing but error pages "
                    yield Violation(rates.first_line, f"{what}({numeral(page)})")
                    break


def _name(column: TextColumn) -> str:
    return f"“{column.heading}”" if column.heading else "without a heading"


def _both_ways(document: AuditedText) -> Iterator[TextTable]:
    for table in document.of(TextTable):
        yield table
        if any(map(_FAILURES.search, table.columns[0].cells)):
            turned = table.with_rows_as_columns()
            yield from [turned] if turned else []
