"""Figures as tables for other programs.

`summary.csv` has every figure of the report; docs/reference/run-folder.md describes the columns.

An open-loop sweep can be had as the sheet that autobench writes as well: a row per demanded rate,
columns per host. In the place of a host stands a variant, with the levels of all factors but the
throughput. Reply rates are those of slots, where httperf takes a sample every five seconds; network
I/O is responses only.

Slots can be had as one Parquet table, a row each, for notebooks and databases. DuckDB writes it,
being a third of the size of pyarrow or polars, and reads it: `select variant,
avg("load.throughput_rps") from 'slots.parquet' group by variant`. It is an extra of webdyno's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from webdyno.core import format as shown
from webdyno.core.base import ENDLESS, Interval
from webdyno.core.errors import UserError, lacks_package
from webdyno.core.files import MIB, replacing, writing
from webdyno.core.judgement import Comparison, VariantValue
from webdyno.core.looks import LongLook
from webdyno.core.metrics import throughput_rps
from webdyno.core.records import Record, SlotRecord
from webdyno.core.sheet import csv_sheet
from webdyno.evidence.point_data import RunData
from webdyno.report.around_rounds import pilot_records
from webdyno.report.show import PointView, RunView

COLUMNS = (
    *("experiment", "kind", "metric", "unit", "variant", "baseline", "round"),
    *("estimate", "low", "high", "worst_case_low", "worst_case_high", "confidence"),
    *("verdict", "endpoint", "at_s"),
)
Field = str | int | float | None
Line = dict[str, Field]

AUTOBENCH_COLUMNS = (
    *("req_rate", "con_rate", "min_rep_rate", "avg_rep_rate", "max_rep_rate", "stddev_rep_rate"),
    *("resp_time", "net_io", "errors"),
)
Figures = Sequence[float | None]
COLUMN_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "VARCHAR",
    datetime: "TIMESTAMPTZ",
}


def summary_csv(view: RunView) -> str:
    """Return the file's text; factors of the experiment have columns after the first one."""
    columns = [COLUMNS[0], *view.head.experiment.factors, *COLUMNS[1:]]
    lines = ([line.get(column) for column in columns] for line in _all_lines(view))
    return csv_sheet([columns, *lines])


def _all_lines(view: RunView) -> Iterator[Line]:
    for point in view.points:
        units = {metric.name: metric.unit for metric in point.judgement.metrics}
        about: Line = {"experiment": view.head.experiment_name}
        for factor, level in point.levels.items():
            about[factor] = level if isinstance(level, int | float) else shown.level(level)
        for line in _pilot_lines(point):
            yield about | line
        for line in _lines(point.judgement.variants, point.judgement.comparisons):
            yield about | {"unit": units[str(line["metric"])]} | line
        for line in _course_lines(point.judgement.looks):
            yield about | line
        for judged in point.judgement.endpoints:
            there: Line = {"unit": judged.metric.unit, "endpoint": judged.endpoint}
            for line in _lines(judged.variants, judged.comparisons):
                yield about | there | line


def _pilot_lines(point: PointView) -> Iterator[Line]:
    for pilot in pilot_records(point.data):
        times = {f"cold_{name}": value for name, value in pilot.cold} | {
            f"pilot_{name}": value for name, value in pilot.found if name.endswith("_s")
        }
        about: Line = {"kind": "pilot", "unit": "s", "variant": pilot.variant}
        for name, value in times.items():
            if value is not None:
                yield about | {"metric": name, "estimate": _figure(value)}


def _course_lines(looks: Sequence[LongLook]) -> Iterator[Line]:
    """Yield the figures of each part of long looks; `at_s` is when it began, under load."""
    for look in looks:
        for part in look.parts:
            about: Line = {"kind": "long-look", "variant": look.variant, "at_s": _figure(part.at_s)}
            memory = part.memory.span(MIB) if part.memory else None
            for metric, unit, interval in (
                ("throughput_rps", "req/s", part.throughput_rps),
                ("latency_p50_us", "µs", part.p50_us),
                ("latency_p99_us", "µs", part.p99_us),
                ("server_cpu_us", "µs", part.server_cpu_us),
                ("memory_mib", "MiB", memory),
            ):
                if interval is not None:
                    yield about | {"metric": metric, "unit": unit} | _interval(interval)


def _lines(variants: Sequence[VariantValue], comparisons: Sequence[Comparison]) -> Iterator[Line]:
    for value in variants:
        about: Line = {"metric": value.metric, "variant": value.variant}
        yield about | {"kind": "variant"} | _interval(value.interval)
        yield from _rounds(about | {"kind": "variant-round"}, value.rounds, value.by_round)
    for comparison in comparisons:
        about = {
            "metric": comparison.metric,
            "variant": comparison.a,
            "baseline": comparison.b,
            "unit": "ratio",
        }
        ratio: Line = {"kind": "ratio", "verdict": str(comparison.verdict)}
        if worst := comparison.worst_case:
            for name, end in (("worst_case_low", worst.low), ("worst_case_high", worst.high)):
                ratio[name] = "inf" if end > ENDLESS else _figure(end)
        yield about | ratio | _interval(comparison.ratio)
        yield from _rounds(about | {"kind": "ratio-round"}, comparison.rounds, comparison.by_round)


def _rounds(about: Line, rounds: Sequence[int], values: Sequence[float]) -> Iterator[Line]:
    for round_number, value in zip(rounds, values, strict=True):
        yield about | {"round": round_number, "estimate": _figure(value)}


def _interval(interval: Interval | None) -> Line:
    if interval is None:
        return {}
    return {
        "estimate": _figure(interval.estimate),
        "low": _figure(interval.low),
        "high": _figure(interval.high),
        "confidence": _figure(interval.confidence),
    }


def _figure(value: float) -> str:
    """Seven digits: more than any measurement has, and no noise of binary fractions."""
    return f"{value:.7g}"


def autobench_sheet(run: RunData) -> str:
    """Write the finished rounds as CSV; raise UserError when no throughput was demanded."""
    rows: dict[float, dict[str, Figures]] = {}
    for data in run.points:
        for variant in data.experiment.variants:
            demanded = data.experiment.load_of(variant).offered_rps
            if demanded is None:
                raise UserError(
                    "autobench's sheet has a row for each demanded rate, but this run has a closed "
                    "loop, which demands none; leave --autobench out"
                )
            if own := data.of_variant(variant):
                levels = data.point.levels.items()
                others = (str(level) for key, level in levels if key != "load.rate_per_s")
                rows.setdefault(demanded, {})["-".join([variant, *others])] = _figures(own)
    hosts = list(dict.fromkeys(host for row in rows.values() for host in row))
    columns = (f"{name}_{host}" for host in hosts for name in AUTOBENCH_COLUMNS)
    sheet = [["dem_req_rate", *columns]]
    nothing = [None] * len(AUTOBENCH_COLUMNS)
    for demanded, row in sorted(rows.items()):
        figures = [figure for host in hosts for figure in row.get(host, nothing)]
        cells = ("" if figure is None else f"{figure:.1f}" for figure in figures)
        sheet.append([f"{demanded:g}", *cells])
    return csv_sheet(sheet)


def _figures(slots: Sequence[SlotRecord]) -> Figures:
    """Return what stands in AUTOBENCH_COLUMNS, in their units: per second, ms, KiB/s, percent."""
    loads = [slot.load for slot in slots]
    measured_s = sum(load.measured_s for load in loads)
    completed = sum(load.requests.completed for load in loads)
    failed = sum(load.failures.total for load in loads)
    sent = _sum(load.requests.sent for load in loads)
    opened = _sum(load.connections.opened for load in loads)
    received = _sum(part for load in loads for part in (load.bytes.head, load.bytes.body))
    means_us = [(load.service_time_us.mean, load.requests.completed) for load in loads]
    weighted = [(mean_us, count) for mean_us, count in means_us if mean_us is not None and count]
    counted = sum(count for _, count in weighted)
    rates = [throughput_rps([slot]) or 0.0 for slot in slots]
    return (
        (completed + failed if sent is None else sent) / measured_s,
        None if opened is None else opened / measured_s,
        min(rates),
        fmean(rates),
        max(rates),
        pstdev(rates),
        sum(mean_us * count for mean_us, count in weighted) / counted / 1000 if counted else None,
        None if received is None else received / 1024 / measured_s,
        100 * failed / max(completed + failed, 1),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """Add up; None when one of them wasn't reported."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def write_parquet(records: Iterable[Record], path: Path) -> None:
    """Write all slots, warm-ups included, replacing the file as a whole.

    Columns are named by their path in slots.jsonl, such as `load.requests.completed`; units are in
    the names. Lists (failure samples, samples of the host) and functions are excluded. Raise
    OperationError when the file can't be written.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise lacks_package("writing Parquet takes", "duckdb") from None
    rows = flat_slots(record for record in records if isinstance(record, SlotRecord))
    columns = _columns(rows)
    with duckdb.connect() as database:
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in columns}
        fields = ", ".join(f"{quoted[name]} {kind}" for name, kind in columns.items())
        database.execute(f"CREATE TABLE slots ({fields})")
        if rows:
            places = ", ".join("?" * len(columns))
            values = [[row.get(name) for name in columns] for row in rows]
            database.executemany(f"INSERT INTO slots VALUES ({places})", values)  # noqa: S608
        with writing(path), replacing(path) as unfinished:
            try:
                database.table("slots").write_parquet(str(unfinished), compression="zstd")
            except duckdb.Error as error:
                raise OSError(str(error)) from error


def flat_slots(slots: Iterable[SlotRecord]) -> list[dict[str, Any]]:
    """Return each slot as a row, by column; lists are excluded, and functions."""
    return [dict(_flat("", slot.model_dump(exclude={"kind", "functions"}))) for slot in slots]


def _flat(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif not isinstance(value, Sequence) or isinstance(value, str):
        yield name, value


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return each column's type: the widest that its values need."""
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).update([type(value)] if value is not None else [])
    columns = {}
    for name, types in kinds.items():
        is_float = not types or types == {int, float}
        widest = float if is_float else types.pop() if len(types) == 1 else str
        columns[name] = COLUMN_TYPES[widest]
    return columns or {"round": "BIGINT"}
