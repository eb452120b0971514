"""Sheets of figures that tools write: autobench's sweeps, `redis-benchmark --csv`."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webdyno.readers.facts import Facts
from webdyno.readers.lines import Line
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
    def headed_by(cls, text: str) -> "Sheet | None":
        """Recognise the header line."""
        if not text.startswith(("dem_req_rate", '"dem_req_rate', '"test","rps"')):
            return None
        return cls(_cells(text))

    def row(self, line: Line) -> list[Output] | None:
        """Give the outputs of a row; None when the line is none, so the sheet has ended."""
        cells = _cells(line.text)
        if len(cells) != len(self.columns) or not cells[-1]:
            return None
        row = dict(zip(self.columns, cells, strict=True))
        made = self._redis(line, row) if "test" in row else list(self._autobench(line, row))
        return made or None

    def _autobench(self, line: Line, row: dict[str, str]) -> Iterator[Output]:
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

    def _redis(self, line: Line, row: dict[str, str]) -> list[Output]:
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


def _cells(text: str) -> list[str]:
    delimiter = "\t" if "\t" in text else ","
    try:
        rows = list(csv.reader([text], delimiter=delimiter))
    except csv.Error:
        return []
    return [cell.strip() for cell in rows[0]] if rows else []
