"""Sheets of figures that tools write: a row is a run, or one row of them is the total."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webdyno.readers.facts import Facts
from webdyno.readers.lines import NumberedLine
from webdyno.readers.numbers import as_count, as_float
from webdyno.readers.output import Output

AUTOBENCH_COLUMNS = {
    "req_rate": "rate_rps",
    "resp_time": "mean_ms",
    "net_io": "transfer_kib_s",
    "errors": "errors_percent",
}
"""Columns of autobench, which have the host's name behind them -> attributes of an output."""

REDIS_PERCENTILES = {50.0: "p50_latency_ms", 95.0: "p95_latency_ms", 99.0: "p99_latency_ms"}


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
        """Give nothing more: each row was an output."""
        return []

    def row(self, line: NumberedLine) -> list[Output] | None:
        """Give the outputs of a row; None when the line is none, so the sheet has ended."""
        cells = _cells(line.text)
        if len(cells) != len(self.columns) or not cells[-1]:
            return None
        row = dict(zip(self.columns, cells, strict=True))
        made = self._redis(line, row) if "test" in row else list(self._autobench(line, row))
        return made or None

    def _autobench(self, line: NumberedLine, row: dict[str, str]) -> Iterator[Output]:
        for host in self._hosts():
            facts = Facts(line.number, line.number, dict(row))
            figures: dict[str, Any] = {
                name: facts.number(column + host) for column, name in AUTOBENCH_COLUMNS.items()
            }
            demanded = facts.number("dem_req_rate")
            if demanded is not None and figures["rate_rps"] is not None:
                yield Output(
                    tool="autobench",
                    first_line=line.number,
                    last_line=line.number,
                    loop="open",
                    host=host.removeprefix("_") or None,
                    demanded_rps=demanded,
                    **figures,
                )

    def _hosts(self) -> list[str]:
        start = "req_rate"
        return [name[len(start) :] for name in self.columns if name.startswith(start)]

    def _redis(self, line: NumberedLine, row: dict[str, str]) -> list[Output]:
        facts = Facts(line.number, line.number, dict(row))
        rate = facts.number("rps")
        if rate is None:
            return []
        found = {percent: facts.number(name) for percent, name in REDIS_PERCENTILES.items()}
        return [
            Output(
                tool="redis-benchmark",
                first_line=line.number,
                last_line=line.number,
                loop="closed",
                path=row["test"],
                rate_rps=rate,
                percentiles_ms={percent: ms for percent, ms in found.items() if ms is not None},
                max_ms=facts.number("max_latency_ms"),
            )
        ]


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
        figures={"Average": "mean_ms", "Max": "max_ms", "Throughput": "rate_rps"},
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
            "Requests/s": "rate_rps",
        },
    ),
)
"""JMeter's aggregate and summary reports, saved as CSV or copied; Locust's `_stats.csv`."""

_PERCENT_COLUMN = re.compile(r"(\d{1,2}(?:\.\d{1,4})?)%(?: Line)?$")


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
                columns = [_spelled(cell) for cell in _cells(line.text)]
                if {form.label, form.requests} <= set(columns):
                    return cls(form, columns)
        return None

    def row(self, line: NumberedLine) -> list[Output] | None:
        """Give the output of the total; None when the line is none, so the sheet has ended."""
        if _RULE_LINE.fullmatch(line.text):
            return []
        cells = _cells(line.text)
        if len(cells) != len(self.columns):
            return None
        row = dict(zip(self.columns, cells, strict=True))
        if row[self.form.label] not in self.form.total:
            return []
        output = self._output(line, row)
        return [output] if output else []

    def end(self) -> list[Output]:
        """Give nothing more: the total has a row of its own."""
        return []

    def _output(self, line: NumberedLine, row: dict[str, str]) -> Output | None:
        form = self.form
        requests = as_count(row[form.requests])
        failed = as_count(row.get(form.failed or "", ""))
        percent = as_float(row.get(form.errors or "", "").rstrip("% "))
        if failed is None and percent is not None and requests is not None:
            failed = round(requests * percent / 100)
        figures: dict[str, Any] = {
            name: as_float(row[column].split("/")[0].strip())
            for column, name in form.figures.items()
            if column in row
        }
        percentiles = {
            float(found[1]): at
            for column, cell in row.items()
            if (found := _PERCENT_COLUMN.match(column)) and (at := as_float(cell)) is not None
        }
        if requests is None:
            return None
        return Output(
            tool=form.tool,
            first_line=line.number,
            last_line=line.number,
            loop="closed",
            requests=requests,
            failed=failed,
            percentiles_ms=percentiles,
            **figures,
        )


_RULE_LINE = re.compile(r"[-=+|:\s]+")


def _spelled(heading: str) -> str:
    """Give a heading as the CSV spells it; JMeter's dashboard leaves a blank out."""
    return {"#Samples": "# Samples", "Samples": "# Samples"}.get(heading, heading)


def _cells(text: str) -> list[str]:
    if "|" in text:
        return [cell.strip() for cell in text.strip("|").split("|")]
    delimiter = "\t" if "\t" in text else ","
    try:
        rows = list(csv.reader([text], delimiter=delimiter))
    except csv.Error:
        return []
    return [cell.strip() for cell in rows[0]] if rows else []
