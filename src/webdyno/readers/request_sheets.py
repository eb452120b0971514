"""Sheets with a row for each request: hey's and oha's CSV, ghz's CSV, JMeter's JTL."""

import csv
from collections import Counter
from dataclasses import dataclass, field

from webdyno.readers.facts import MOST_ROWS
from webdyno.readers.lines import NumberedLine
from webdyno.readers.numbers import as_float
from webdyno.readers.output import Output


@dataclass(frozen=True)
class SheetForm:
    """How the rows of a tool are understood."""

    tool: str
    header: tuple[str, ...]
    """Columns with which the header begins."""
    time: str
    ms_per_unit: float
    status: str
    success: str | None = None
    """Column that says `true` where the request was right."""
    start: str | None = None
    start_ms_per_unit: float = 1.0
    size: str | None = None


FORMS = (
    SheetForm(
        tool="hey",
        header=("response-time", "DNS+dialup"),
        time="response-time",
        ms_per_unit=1000,
        status="status-code",
        start="offset",
        start_ms_per_unit=1000,
    ),
    SheetForm(
        tool="oha",
        header=("request-start", "DNS"),
        time="request-duration",
        ms_per_unit=1000,
        status="status",
        start="request-start",
        start_ms_per_unit=1000,
        size="bytes",
    ),
    SheetForm(
        tool="jmeter",
        header=("timeStamp", "elapsed"),
        time="elapsed",
        ms_per_unit=1,
        status="responseCode",
        success="success",
        start="timeStamp",
        size="bytes",
    ),
    SheetForm(
        tool="ghz",
        header=("duration (ms)", "status"),
        time="duration (ms)",
        ms_per_unit=1,
        status="status",
    ),
)


@dataclass
class RequestSheet:
    """Counts rows while they pass by; its end makes one output of them."""

    form: SheetForm
    columns: list[str]
    first_line: int
    last_line: int
    requests: int = 0
    failed: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    total_ms: float = 0.0
    max_ms: float = 0.0
    first_start_ms: float = float("inf")
    last_end_ms: float = 0.0
    total_bytes: float = 0.0

    @classmethod
    def headed_by(cls, line: NumberedLine) -> "RequestSheet | None":
        """Recognise the header line."""
        columns = line.text.split(",")
        for form in FORMS:
            needed = {form.time, form.status, form.success or form.status}
            if tuple(columns[: len(form.header)]) == form.header and needed <= set(columns):
                return cls(form, columns, line.number, line.number)
        return None

    def row(self, line: NumberedLine) -> list[Output] | None:
        """Count a row; None when the line is none, so the sheet has ended."""
        cells = _cells(line.text)
        if len(cells) != len(self.columns):
            return None
        row = dict(zip(self.columns, cells, strict=True))
        took = as_float(row[self.form.time])
        if took is None:
            return None
        self.last_line = line.number
        self._count(row, took * self.form.ms_per_unit)
        return []

    def _count(self, row: dict[str, str], took_ms: float) -> None:
        form, status = self.form, row[self.form.status].strip()
        self.requests += 1
        self.total_ms += took_ms
        self.max_ms = max(self.max_ms, took_ms)
        http = len(status) == 3 and status.isdecimal() and "1" <= status[0] <= "5"
        if http and (status in self.by_status or len(self.by_status) < MOST_ROWS):
            self.by_status[status] += 1
        right = http or (form.tool == "ghz" and status == "OK")
        if form.success is not None and http and status[0] == "2":
            right = row[form.success].strip().lower() == "true"  # an assertion failed
            if not right:
                self.by_status[status] -= 1
        self.failed += not right
        start = as_float(row[form.start]) if form.start else None
        if start is not None:
            begun = start * form.start_ms_per_unit
            self.first_start_ms = min(self.first_start_ms, begun)
            self.last_end_ms = max(self.last_end_ms, begun + took_ms)
        self.total_bytes += as_float(row.get(form.size or "", "")) or 0

    def end(self) -> list[Output]:
        """Give the output that the rows are."""
        if not self.requests:
            return []
        by_status = {status: number for status, number in self.by_status.items() if number}
        wrong = sum(number for status, number in by_status.items() if not status.startswith("2"))
        took_s = (self.last_end_ms - self.first_start_ms) / 1000 if self.last_end_ms else None
        output = Output(
            tool=self.form.tool,
            first_line=self.first_line,
            last_line=self.last_line,
            loop="closed",
            requests=self.requests,
            failed=self.failed,
            by_status=by_status,
            non_2xx=wrong if by_status else None,
            duration_s=took_s,
            rate_rps=self.requests / took_s if took_s else None,
            total_bytes=int(self.total_bytes) if self.form.tool == "jmeter" else None,
            body_bytes=int(self.total_bytes) if self.form.tool == "oha" else None,
            mean_ms=self.total_ms / self.requests,
            max_ms=self.max_ms,
        )
        return [output]


def _cells(text: str) -> list[str]:
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return []
