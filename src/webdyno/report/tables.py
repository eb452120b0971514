"""Tables of variants: what each one's value is, and its ratio to the baseline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from webdyno.comparison.sentences import verdict_word
from webdyno.core import format as text
from webdyno.core.histogram import Histogram, merge_encoded
from webdyno.core.judgement import Comparison, Metric, VariantValue, Verdict
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Cell, Column, Kind, RowGroup, Table, simple_table
from webdyno.report.show import MetricTable, PointView, Row
from webdyno.report.words import (
    MICROSECONDS,
    bias_sentences,
    kind_words,
    metric_title,
    ratio_and_interval,
    side_word,
    sure_bounds,
    sure_ratio,
    value_and_interval,
    verdict_cell,
    within_a_round,
    worst_case_words,
)

IN_A_TABLE = {
    Verdict.FASTER: "better",
    Verdict.SLOWER: "worse",
    Verdict.EQUIVALENT: "same",
    Verdict.INVALID: "not valid",
}
"""Verdicts where several metrics stand below each other, of which some are better high."""
MOST_COLUMNS = 2
"""Variants that have columns of their own; more of them have rows."""
TAILS = {"latency_p50_us": "p95", "latency_p99_us": "p99.9"}
"""By metric: the percentile of all slots that stands below it."""
FEWEST_BEYOND = 10
"""A percentile is known when at least so many responses lie beyond it."""
BEYOND = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p99.9": 0.001, "p99.99": 0.0001}
"""By name: the share of the responses that take longer."""
ALL_SLOTS = (
    "All slots of a variant merged. What is a mean of rounds, with its CI, is in the table on top. "
    f"{text.MISSING}: fewer than ten responses took longer."
)
OF_TIMES = (
    "95% CI: of the mean over rounds. Within a round: where the percentile of one typical round "
    "lies by the number of its responses."
)
WORST_CASE = "Worst case: all interference is counted against the verdict. Verdicts rest on it."


def metrics_table(point: PointView, deciding: MetricTable | None, *, tails: bool = False) -> Table:
    """Return what decides and the metrics next to it; `tails`: also percentiles of all slots.

    Where nothing of what decides counts, the metrics that do are all.
    """
    alongside = _shown_alongside(point)
    if deciding is None:
        return _columns_of_variants(point, alongside, {})
    if _has_rows(deciding):
        return _rows_of_variants(point, deciding, alongside)
    return _columns_of_variants(point, [deciding, *alongside], TAILS if tails else {})


def not_shown(point: PointView) -> list[MetricTable]:
    """Return the metrics that the table leaves out, or has no room for where variants have rows."""
    if point.deciding and _has_rows(point.deciding):
        return point.alongside
    return [table for table in point.alongside if not METRICS[table.metric.name].in_brief]


def has_valid(point: PointView) -> bool:
    """Whether there are metrics that count where what decides is invalid; of two variants only."""
    shown = _shown_alongside(point)
    return bool(shown) and not _has_rows(point.deciding or shown[0])


def _shown_alongside(point: PointView) -> list[MetricTable]:
    return [table for table in point.alongside if METRICS[table.metric.name].in_brief]


def _has_rows(deciding: MetricTable) -> bool:
    return deciding.has_ranks or len(deciding.rows) > MOST_COLUMNS


def failed_requests(points: Sequence[PointView]) -> str:
    """Return how many requests failed, by variant; `none` where none did."""
    variants = points[0].data.experiment.variants
    failed = {name: sum(_failures(point.data, name) for point in points) for name in variants}
    said = (f"{name} {text.number(count)}" for name, count in failed.items() if count)
    return ", ".join(said) or "none"


def _columns_of_variants(
    point: PointView, tables: Sequence[MetricTable], tails: Mapping[str, str]
) -> Table:
    variants = [row.variant for row in tables[0].rows]
    compared = bool(tables[0].rows[0].comparison)
    columns = [Column("metric", "name", obvious=True)]
    columns += [Column(variant, "value") for variant in variants[:-1]]
    columns.append(Column(f"{variants[-1]} (baseline)" if compared else variants[-1], "value"))
    if compared:
        pairs = [(table.rows[0], table.rows[-1]) for table in tables]
        columns += [
            Column(_ratio_heading(pairs), "ratio"),
            Column(ci_heading(tables[0]), "range"),
            Column("verdict", "verdict", obvious=True),
        ]
    blank = [""] * 3 if compared else []
    uncompared: list[Cell | str] = ["", "", Cell("not compared", soft=True)] if compared else []
    rows: list[list[Cell | str]] = []
    for table in tables:
        name = Cell(metric_title(table.metric), strong=table is point.deciding)
        values = (
            least_sign(point, table, row) + value_words(table.metric, row.value)
            for row in table.rows
        )
        ratio = (
            _ratio_cells(table.rows[0].comparison, decides=table is point.deciding)
            if compared
            else []
        )
        rows.append([name, *values, *ratio])
        if tail := tails.get(table.metric.name):
            merged = (merged_latency(point.data, variant) for variant in variants)
            beyond = [percentile(all_, tail) for all_ in merged]
            if set(beyond) != {text.MISSING}:
                rows.append([Cell(f"Latency {tail}", below="all slots"), *beyond, *uncompared])
    if point.has_one_load:  # the trials of a search fail by intent
        failed = (text.number(_failures(point.data, variant)) for variant in variants)
        rows.append(["Failed requests", *failed, *blank])
    if compared and (lacking := _not_valid(point, tables)):
        blanks = [""] * (len(columns) - 2)
        rows.append([lacking, *blanks, _verdict_cell(Verdict.INVALID)])
    return Table(columns, [RowGroup(rows)], style="brief")


def _not_valid(point: PointView, shown: Sequence[MetricTable]) -> str:
    """Return the metrics that a table lacks because none of their figures counts."""
    names = {table.metric.name for table in shown}
    invalid = [
        METRICS[each.metric]
        for each in point.judgement.comparisons
        if each.verdict is Verdict.INVALID
    ]
    lacking = (rule for rule in invalid if rule.in_brief and rule.name not in names)
    valid = {METRICS[name].kind for name in names}
    return text.upper_first(", ".join(kind_words(lacking, valid)))


def _rows_of_variants(
    point: PointView, deciding: MetricTable, alongside: Sequence[MetricTable]
) -> Table:
    failed = {row.variant: _failures(point.data, row.variant) for row in deciding.rows}
    divisor = next((row for row in deciding.rows if row.comparison is None), deciding.rows[-1])
    columns = [
        *([Column("rank", "rank")] if deciding.has_ranks else []),
        Column("variant", "name", obvious=True),
        Column(metric_title(deciding.metric), "value"),
        Column(_ratio_heading((row, divisor) for row in deciding.rows), "ratio"),
        Column(ci_heading(deciding), "range"),
        Column("verdict", "verdict", obvious=True),
        *(
            Column(metric_title(table.metric), "value", spare=table.metric.name != CPU_TIME)
            for table in alongside
        ),
        *([Column("Failed", "value")] if any(failed.values()) else []),
    ]
    values = [{row.variant: row.valid_value for row in table.rows} for table in alongside]
    rows: list[list[Cell | str]] = []
    for row in deciding.rows:
        value = value_words(deciding.metric, row.valid_value)
        rows.append(
            [
                *([row.rank] if deciding.has_ranks else []),
                row.variant,
                least_sign(point, deciding, row) + value,
                *_ratio_cells(row.comparison, decides=True, divisor="first" if row.rank else ""),
                *(
                    value_words(table.metric, known.get(row.variant))
                    for table, known in zip(alongside, values, strict=True)
                ),
                *([text.number(failed[row.variant])] if any(failed.values()) else []),
            ]
        )
    return Table(columns, [RowGroup(rows)], style="brief", is_sortable=True)


def _ratio_heading(pairs: Iterable[tuple[Row, Row]]) -> str:
    """Return what ratios are, where some visibly aren't the quotients of the values shown.

    They are means of the rounds' ratios: of rounds that both have, by CPU seconds on a noisy
    machine.
    """
    return "ratio" if all(_is_quotient(*pair) for pair in pairs) else "mean ratio"


def _is_quotient(row: Row, divisor: Row) -> bool:
    ratio = row.comparison and row.comparison.decisive
    values = [each.valid_value and each.valid_value.interval for each in (row, divisor)]
    a, b = (interval.estimate if interval else 0.0 for interval in values)
    if not ratio or not b:
        return True
    return bool(abs(a / b - ratio.estimate) <= 10.0 ** -text.ratio_decimals(ratio))


def least_sign(point: PointView, table: MetricTable, row: Row) -> str:
    """Mark what may be more than was found."""
    bounds = [name for show in point.shows for name in show.lower_bounds(point.judgement)]
    decides = table.metric.name == point.data.measure.decide_on
    return "≥ " if decides and row.variant in bounds else ""


def value_words(metric: Metric, value: VariantValue | None) -> str:
    """Return a variant's value as tables and bars show it."""
    if value is None:
        return text.MISSING
    known = value.interval.estimate if value.interval else next(iter(value.by_round), None)
    if known is None:
        return text.MISSING
    if metric.unit == MICROSECONDS:
        return text.latency(known)
    return text.quantity(value.interval) if value.interval else text.significant(known)


def _failures(data: PointData, variant: str) -> int:
    """Count requests that failed, those of ramp-ups as well: so do the warnings about them."""
    return sum(slot.load.all_of_it.failures.total for slot in data.of_variant(variant))


def _ratio_cells(
    comparison: Comparison | None, *, decides: bool, divisor: str = ""
) -> list[Cell | str]:
    if comparison is None:
        return ["", "", Cell(divisor or "baseline", soft=True)]
    verdict = comparison.verdict
    word = _verdict_cell(verdict)
    if verdict is Verdict.INVALID:
        return ["", "", word]
    ratio = Cell(sure_ratio(comparison), strong=decides)
    return [ratio, Cell(sure_bounds(comparison), soft=True), word]


def _verdict_cell(verdict: Verdict) -> Cell:
    return verdict_cell(verdict, IN_A_TABLE.get(verdict, str(verdict)))


def merged_latency(data: PointData, variant: str) -> Histogram:
    """Return the latencies of all slots of a variant in finished rounds."""
    slots = data.of_variant(variant)
    return merge_encoded(slot.load.latency_us.histogram for slot in slots)


def percentile(merged: Histogram, name: str) -> str:
    """Return one of `BEYOND` in words."""
    share = BEYOND[name]
    us = merged.quantile(1 - share) if merged.total * share >= FEWEST_BEYOND else None
    return text.latency(us) if us else text.MISSING


def latency_table(point: PointView) -> Table | None:
    """Return each variant's percentiles that have no value of their own; None without any.

    Its slots have one load.
    """
    data = point.data
    tables = [*point.alongside, *([point.deciding] if point.deciding else [])]
    valued = {table.metric.name for table in tables}
    names = [name for name in BEYOND if f"latency_{name}_us" not in valued]
    merged = {variant: merged_latency(data, variant) for variant in point.variants}
    rows = [
        [variant, *(percentile(times, name) for name in names)]
        for variant, times in merged.items()
        if times.total
    ]
    columns: dict[str, Kind] = {"variant": "name", **dict.fromkeys(names, "value")}
    return simple_table(columns, rows, "brief") if rows else None


def confidence_words(tables: Sequence[MetricTable]) -> str:
    """Return the CIs' confidence: `95%`, or `95–98.3%` where Holm's correction makes it differ."""
    compared = chain.from_iterable(table.comparisons for table in tables)
    levels = {comparison.ratio.confidence for comparison in compared if comparison.ratio}
    low, high = min(levels, default=0.95), max(levels, default=0.95)
    if low == high:
        return text.confidence_level(low)
    return f"{text.confidence_level(low).removesuffix('%')}{text.DASH}{text.confidence_level(high)}"


def ci_heading(table: MetricTable) -> str:
    """Return the intervals of a table's ratios: `95% CI`, or `adjusted 95% CI`."""
    levels = [comparison.ratio.confidence for comparison in table.comparisons if comparison.ratio]
    return text.ci_level(max(levels, default=0.0))


def reasons(table: MetricTable) -> Iterator[tuple[str, str]]:
    """Yield what each verdict rests on; where there is none, the answer has said why."""
    for comparison in table.comparisons:
        if comparison.verdict is not Verdict.INVALID:
            yield (
                f"{comparison.a} against {comparison.b}",
                " ".join([comparison.why, *bias_sentences(comparison)]),
            )


def ratio_columns(tables: Sequence[MetricTable], verdict: str = "") -> list[Column]:
    """Return the columns of variants: values, ratios, and a verdict where there is one."""
    return [
        Column("variant", "name", obvious=True),
        Column("value", "value"),
        Column("95% CI", "range", spare=True, below="within a round", below_means=OF_TIMES),
        Column("ratio", "ratio"),
        Column(
            f"{confidence_words(tables)} CI", "range", below="worst case", below_means=WORST_CASE
        ),
        Column(verdict, "verdict"),
    ]


def variant_rows(
    table: MetricTable, *, decides: bool, ranked: bool = False
) -> Iterator[list[Cell | str]]:
    """Yield the variants for these columns, of a ranking after their ranks."""
    for row in table.rows:
        value, around = value_and_interval(row.value)
        yield [
            *([row.rank] if ranked else []),
            row.variant,
            value,
            Cell(around, soft=True, below=within_a_round(row.value)),
            *_ratio_with_bounds(table, row, decides=decides),
        ]


def _ratio_with_bounds(table: MetricTable, row: Row, *, decides: bool) -> list[Cell | str]:
    comparison = row.comparison
    if comparison is None:
        divisor = "first" if row.rank else "baseline"
        return ["", "", Cell(divisor if table.comparisons else "", soft=True)]
    ratio, interval = ratio_and_interval(comparison)
    verdict, metric = comparison.verdict, comparison.metric
    return [
        Cell(ratio, strong=decides),
        Cell(interval, soft=True, below=worst_case_words(comparison)),
        verdict_cell(verdict, verdict_word(verdict, metric)) if decides else side_word(comparison),
    ]


def other_metrics_table(tables: Sequence[MetricTable], *, better: bool = False) -> Table:
    """Return what else was measured, metric by metric; `better` says which way that is."""
    return Table(
        columns=ratio_columns(tables),
        groups=[
            RowGroup(
                list(variant_rows(table, decides=False)),
                heading=table.title,
                note=f"{table.metric.better} is better" if better else "",
            )
            for table in tables
        ],
        soft=True,
        style="evidence beside",
    )


def by_variant_table(
    variants: Iterable[str],
    groups: Mapping[str, Sequence[tuple[Cell | str, Mapping[str, str]]]],
    style: Literal["costs", "preflight"],
) -> Table:
    """Return what was looked at, in groups, as each variant had it."""
    variants = list(variants)
    return Table(
        columns=[
            Column("what", "name", obvious=True),
            *(Column(variant, "value" if style == "costs" else "words") for variant in variants),
        ],
        groups=[
            RowGroup(
                [
                    [what, *(had.get(variant, text.MISSING) for variant in variants)]
                    for what, had in rows
                ],
                heading=group,
            )
            for group, rows in groups.items()
        ],
        style=style,
    )
