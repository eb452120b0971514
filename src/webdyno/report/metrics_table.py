"""The one table of a result: what decides, failed requests, and the metrics next to it.

Two variants have columns and metrics have rows; of more variants each has a row.
"""

from collections.abc import Mapping, Sequence

from webdyno.comparison.sentences import verdict_word
from webdyno.core import format as text
from webdyno.core.judgement import Comparison, Metric, VariantValue, Verdict
from webdyno.evidence.point_data import PointData
from webdyno.media import document as doc
from webdyno.report.percentiles import merged_latency, percentile
from webdyno.report.ratio_tables import MetricTable, Row, ci_heading
from webdyno.report.show import PointView
from webdyno.report.words import (
    MICROSECONDS,
    metric_title,
    ratio_and_interval,
    sure_bounds,
    verdict_cell,
)

SHOWN = (
    *("throughput_rps", "capacity_rps", "server_cpu_us", "instructions"),
    *("latency_p50_us", "latency_p99_us"),
    *("first_event_p50_us", "event_gap_p50_us", "event_gap_p99_us"),
    *("statements", "memory_mib"),
)
"""Metrics that are shown next to the deciding one."""
MOST_COLUMNS = 2
"""Variants that have columns of their own; more of them have rows."""


TAILS = {"latency_p50_us": "p95", "latency_p99_us": "p99.9"}
"""By metric: the percentile of all slots that stands below it."""


def metrics_table(point: PointView, deciding: MetricTable, *, tails: bool = False) -> doc.Table:
    """Give what decides and the most important metrics next to it, one interval in a cell.

    `tails`: where variants have columns also percentiles that are known of all slots alone.
    """
    alongside = [table for table in point.alongside if table.metric.name in SHOWN]
    if _has_rows(deciding):
        return _rows_of_variants(point, deciding, alongside)
    return _columns_of_variants(point, [deciding, *alongside], TAILS if tails else {})


def not_shown(point: PointView) -> list[MetricTable]:
    """Give the metrics that the table leaves out, or has no room for where variants have rows."""
    if point.deciding and _has_rows(point.deciding):
        return point.alongside
    return [table for table in point.alongside if table.metric.name not in SHOWN]


def _has_rows(deciding: MetricTable) -> bool:
    """Whether variants have rows, and not columns."""
    return deciding.ranked or len(deciding.rows) > MOST_COLUMNS


def failed_requests(points: Sequence[PointView]) -> str:
    """Say how many requests failed, by variant; `none` where none did."""
    variants = points[0].data.experiment.variants
    failed = {name: sum(_failures(point.data, name) for point in points) for name in variants}
    said = (f"{name} {text.number(count)}" for name, count in failed.items() if count)
    return ", ".join(said) or "none"


def _columns_of_variants(
    point: PointView, tables: Sequence[MetricTable], tails: Mapping[str, str]
) -> doc.Table:
    """Give a row for each metric: names in columns, and of two their ratio."""
    variants = [row.variant for row in tables[0].rows]
    compared = bool(tables[0].rows[0].comparison)
    columns = [doc.Column("metric", "name", obvious=True)]
    columns += [doc.Column(variant, "value") for variant in variants[:-1]]
    columns.append(doc.Column(f"{variants[-1]} (baseline)" if compared else variants[-1], "value"))
    if compared:
        columns += [
            doc.Column("ratio", "ratio"),
            doc.Column(ci_heading(tables[0]), "range"),
            doc.Column("verdict", "verdict", obvious=True),
        ]
    blank = [""] * 3 if compared else []
    rows: list[list[doc.Cell | str]] = []
    for number, table in enumerate(tables):
        name = doc.Cell(metric_title(table.metric), strong=number == 0)
        values = (_bound(point, table, row) + _value(table.metric, row.value) for row in table.rows)
        ratio = _compared(table.rows[0].comparison, decides=number == 0) if compared else []
        rows.append([name, *values, *ratio])
        if tail := tails.get(table.metric.name):
            merged = (merged_latency(point.data, variant) for variant in variants)
            name = doc.Cell(f"Latency {tail}", below="all slots")
            rows.append([name, *(percentile(all_, tail) for all_ in merged), *blank])
    if point.has_one_load:  # the trials of a search fail by intent
        rows.insert(
            1, ["Failed requests", *(_failed(point.data, variant) for variant in variants), *blank]
        )
    return doc.Table(columns, [doc.RowGroup(rows)], style="brief")


def _rows_of_variants(
    point: PointView, deciding: MetricTable, alongside: Sequence[MetricTable]
) -> doc.Table:
    """Give a row for each variant, in a ranking in that of the ranks."""
    columns = [
        *([doc.Column("rank", "rank")] if deciding.ranked else []),
        doc.Column("variant", "name", obvious=True),
        doc.Column(metric_title(deciding.metric), "value"),
        doc.Column("ratio", "ratio"),
        doc.Column(ci_heading(deciding), "range"),
        doc.Column("verdict", "verdict", obvious=True),
        *(doc.Column(metric_title(table.metric), "value", spare=True) for table in alongside),
        doc.Column("Failed", "value"),
    ]
    values = [{row.variant: row.value for row in table.rows} for table in alongside]
    rows = [
        [
            *([row.rank] if deciding.ranked else []),
            row.variant,
            _bound(point, deciding, row) + _value(deciding.metric, _believed(row)),
            *_compared(row.comparison, decides=True),
            *(
                _value(figure.metric, known.get(row.variant))
                for figure, known in zip(alongside, values, strict=True)
            ),
            _failed(point.data, row.variant),
        ]
        for row in deciding.rows
    ]
    return doc.Table(columns, [doc.RowGroup(rows)], style="brief")


def _believed(row: Row) -> VariantValue | None:
    """Give a variant's value; none where a rule says that it can't be believed."""
    is_invalid = row.comparison is not None and row.comparison.verdict is Verdict.INVALID
    return None if is_invalid else row.value


def _bound(point: PointView, table: MetricTable, row: Row) -> str:
    """Mark what may be more than was found."""
    bounds = [name for show in point.shows for name in show.lower_bounds(point.judgement)]
    decides = table.metric.name == point.data.measure.decide_on
    return "≥ " if decides and row.variant in bounds else ""


def _value(metric: Metric, value: VariantValue | None) -> str:
    """Give a variant's value; latencies in the unit that suits them."""
    if value is None:
        return text.MISSING
    known = value.interval.estimate if value.interval else next(iter(value.by_round), None)
    if known is None:
        return text.MISSING
    if metric.unit == MICROSECONDS:
        return text.latency(known)
    return text.quantity(value.interval) if value.interval else text.significant(known)


def _failures(data: PointData, variant: str) -> int:
    return sum(slot.load.failures.total for slot in data.of_variant(variant))


def _failed(data: PointData, variant: str) -> str:
    return text.number(_failures(data, variant))


def _compared(comparison: Comparison | None, *, decides: bool) -> list[doc.Cell | str]:
    if comparison is None:
        return ["", "", doc.Cell("baseline", soft=True)]
    ratio, _ = ratio_and_interval(comparison)
    name = verdict_word(comparison.verdict, comparison.metric)
    word = (
        verdict_cell(comparison.verdict, name)
        if decides
        else doc.Cell(_direction(comparison), soft=True)
    )
    return [doc.Cell(ratio, strong=decides), doc.Cell(sure_bounds(comparison), soft=True), word]


def _direction(comparison: Comparison) -> str:
    """Say of what isn't the verdict only which way it goes."""
    if comparison.verdict in {Verdict.FASTER, Verdict.SLOWER} and comparison.ratio:
        return "higher" if comparison.ratio.estimate > 1 else "lower"
    return "same" if comparison.verdict is Verdict.EQUIVALENT else str(comparison.verdict)
