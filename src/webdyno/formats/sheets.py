"""Sheets of figures that tools write: a row is a run, a request, or the total of a run."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from webdyno.formats import Output
from webdyno.formats.facts import MOST_ROWS, Figures, non_2xx
from webdyno.formats.text import NumberedLine, as_count, as_float, known

AUTOBENCH_COLUMNS = {
    "req_rate": "throughput_rps",
    "resp_time": "mean_ms",
    "net_io": "transfer_kib_s",
    "errors": "errors_percent",
}
"""Columns of autobench, which have the host's name behind them -> attributes of an output."""

REDIS_PERCENTILES = {50.0: "p50_latency_ms", 95.0: "p95_latency_ms", 99.0: "p99_latency_ms"}
SPELLINGS = {"#Samples": "# Samples", "Samples": "# Samples"}
"""Columns of JMeter's dashboard -> the same in its CSV, which has blanks."""
_PERCENT_COLUMN = re.compile(r"(\d{1,2}(?:\.\d{1,4})?)%(?: Line)?$")
_RULE_LINE = re.compile(r"[-=+|:\s]+")


@dataclass(frozen=True)
class Sheet:
    """The header of such a sheet; every row is an output, or one for each host."""

    columns: list[str]

    @classmethod
    def headed_by(cls, line: NumberedLine) -> "Sheet | None":
        """Recognise the header line."""
        if not line.text.startswith(("dem_req_rate", '"dem_req_rate', '"test","rps"')):
            return None
        return cls(_cells(line.text))

    def end(self) -> list[Output]:
        return []

    def row(self, line: NumberedLine) -> list[Output] | None:
        """Return the outputs of a row; None when the line is none, so the sheet has ended."""
        cells = _cells(line.text)
        if len(cells) != len(self.columns) or not cells[-1]:
            return None
        row = dict(zip(self.columns, cells, strict=True))
        made = _of_redis(line, row) if "test" in row else _of_autobench(line, row)
        return list(made) or None


def _of_autobench(line: NumberedLine, row: dict[str, str]) -> Iterator[Output]:
    start = "req_rate"
    demanded_rps = as_float(row.get("dem_req_rate"))
    for host in (name[len(start) :] for name in row if name.startswith(start)):
        figures: Figures = {
            name: as_float(row.get(column + host)) for column, name in AUTOBENCH_COLUMNS.items()
        }
        if demanded_rps is not None and figures["throughput_rps"] is not None:
            figures |= {"host": host.removeprefix("_") or None, "demanded_rps": demanded_rps}
            yield _row_output(line, tool="autobench", loop="open", **figures)


def _of_redis(line: NumberedLine, row: dict[str, str]) -> Iterator[Output]:
    if (throughput_rps := as_float(row.get("rps"))) is None:
        return
    yield _row_output(
        line,
        tool="redis-benchmark",
        path=row["test"],
        throughput_rps=throughput_rps,
        percentiles_ms=known(
            {percent: as_float(row.get(name)) for percent, name in REDIS_PERCENTILES.items()}
        ),
        max_ms=as_float(row.get("max_latency_ms")),
    )


def _row_output(line: NumberedLine, **figures: Any) -> Output:  # noqa: ANN401 (Output's attributes)
    usual: Figures = {"first_line": line.number, "last_line": line.number, "loop": "closed"}
    return Output(**usual | figures)


@dataclass(frozen=True)
class TotalForm:
    """A sheet of which one row is the total: name of its column -> attribute of an output."""

    tool: str
    label: str
    total: tuple[str, ...]
    requests: str
    failed: str | None
    errors: str | None
    """Column with the failures' share, as `4.07%`."""
    figures: dict[str, str]


TOTALS = (
    TotalForm(
        tool="jmeter",
        label="Label",
        total=("TOTAL", "Total"),
        requests="# Samples",
        failed="FAIL",
        errors="Error %",
        figures={"Average": "mean_ms", "Max": "max_ms", "Throughput": "throughput_rps"},
    ),
    TotalForm(
        tool="locust",
        label="Name",
        total=("Aggregated", "Total"),
        requests="Request Count",
        failed="Failure Count",
        errors=None,
        figures={
            "Average Response Time": "mean_ms",
            "Max Response Time": "max_ms",
            "Requests/s": "throughput_rps",
        },
    ),
)
"""JMeter's aggregate and summary reports, saved as CSV or copied; Locust's `_stats.csv`."""


@dataclass(frozen=True)
class TotalSheet:
    """The header of a sheet with a total; the rows above it are parts of it."""

    form: TotalForm
    columns: list[str]

    @classmethod
    def headed_by(cls, line: NumberedLine) -> "TotalSheet | None":
        """Recognise the header line."""
        for form in TOTALS:
            if form.label in line.text and form.requests.lstrip("# ") in line.text:
                columns = [SPELLINGS.get(cell, cell) for cell in _cells(line.text)]
                if {form.label, form.requests} <= set(columns):
                    return cls(form, columns)
        return None

    def row(self, line: NumberedLine) -> list[Output] | None:
        """Return the output of the total; None when the line is none, so the sheet has ended."""
        if _RULE_LINE.fullmatch(line.text):
            return []
        cells = _cells(line.text)
        if len(cells) != len(self.columns):
            return None
        row = dict(zip(self.columns, cells, strict=True))
        if row[self.form.label] not in self.form.total:
            return []
        output = self._total(line, row)
        return [output] if output else []

    def end(self) -> list[Output]:
        return []

    def _total(self, line: NumberedLine, row: dict[str, str]) -> Output | None:
        form = self.form
        requests = as_count(row[form.requests])
        failed = as_count(row.get(form.failed or "", ""))
        percent = as_float(row.get(form.errors or "", "").rstrip("% "))
        if failed is None and percent is not None and requests is not None:
            failed = round(requests * percent / 100)
        figures: Figures = {
            name: as_float(row[column].split("/")[0].strip())
            for column, name in form.figures.items()
            if column in row
        }
        percentiles = {
            float(match[1]): as_float(cell)
            for column, cell in row.items()
            if (match := _PERCENT_COLUMN.match(column))
        }
        if requests is None:
            return None
        figures |= {"requests": requests, "failed": failed, "percentiles_ms": known(percentiles)}
        return _row_output(line, tool=form.tool, **figures)


def _cells(text: str) -> list[str]:
    if "|" in text:
        return [cell.strip() for cell in text.strip("|").split("|")]
    return [cell.strip() for cell in _csv_cells(text, "\t" if "\t" in text else ",")]


def _csv_cells(text: str, delimiter: str = ",") -> list[str]:
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


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


REQUEST_FORMS = (
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
        for form in REQUEST_FORMS:
            needed = {form.time, form.status, form.success or form.status}
            if tuple(columns[: len(form.header)]) == form.header and needed <= set(columns):
                return cls(form, columns, line.number, line.number)
        return None

    def row(self, line: NumberedLine) -> list[Output] | None:
        """Count a row; None when the line is none, so the sheet has ended."""
        cells = _csv_cells(line.text)
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
        """Return the output that the rows are."""
        if not self.requests:
            return []
        by_status = {status: number for status, number in self.by_status.items() if number}
        took_s = (self.last_end_ms - self.first_start_ms) / 1000 if self.last_end_ms else None
        output = Output(
            tool=self.form.tool,
            first_line=self.first_line,
            last_line=self.last_line,
            loop="closed",
            requests=self.requests,
            failed=self.failed,
            by_status=by_status,
            non_2xx=non_2xx(by_status),
            duration_s=took_s,
            throughput_rps=self.requests / took_s if took_s else None,
            total_bytes=int(self.total_bytes) if self.form.tool == "jmeter" else None,
            body_bytes=int(self.total_bytes) if self.form.tool == "oha" else None,
            mean_ms=self.total_ms / self.requests,
            max_ms=self.max_ms,
        )
        return [output]


AnySheet = Sheet | TotalSheet | RequestSheet


def sheet_headed_by(line: NumberedLine) -> AnySheet | None:
    return Sheet.headed_by(line) or TotalSheet.headed_by(line) or RequestSheet.headed_by(line)
