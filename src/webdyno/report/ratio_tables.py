"""Tables of variants: what each one's value is, and its ratio to the baseline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from webdyno.comparison.sentences import verdict_word
from webdyno.core import format as text
from webdyno.core.judgement import Comparison, Metric, VariantValue, Verdict
from webdyno.media.document import Cell, Column, RowGroup, Table
from webdyno.report.words import (
    bias_sentences,
    metric_title,
    ratio_and_interval,
    side_word,
    value_and_interval,
    verdict_cell,
    within_a_round,
    worst_case_words,
)

OF_TIMES = (
    "95% CI: of the mean over rounds. Within a round: where the percentile of one typical round "
    "lies by the number of its responses."
)
WORST_CASE = "Worst case: all interference is counted against the verdict. Verdicts rest on it."


@dataclass(frozen=True)
class Row:
    """One variant on one metric at one point."""

    variant: str
    value: VariantValue | None
    comparison: Comparison | None
    """None for the baseline, and for all variants of a run that ended too early."""
    rank: str = ""
    """In a ranking: where the variant stands, or may stand."""


@dataclass(frozen=True)
class MetricTable:
    """One metric at one point: its variants next to each other."""

    metric: Metric
    rows: list[Row]

    @property
    def title(self) -> str:
        """The metric's words for people as a heading, with its unit where they don't imply it."""
        return metric_title(self.metric)

    @property
    def informs(self) -> bool:
        """Whether there is more to it than that nothing about it can be believed."""
        verdicts = [row.comparison.verdict for row in self.rows if row.comparison]
        return any(verdict is not Verdict.INVALID for verdict in verdicts)

    @property
    def ranked(self) -> bool:
        """Whether it is about ranks."""
        return any(row.rank for row in self.rows)

    @property
    def compared(self) -> list[Comparison]:
        """The comparisons for which there is a ratio."""
        comparisons = [row.comparison for row in self.rows if row.comparison]
        return [comparison for comparison in comparisons if comparison.ratio]


def confidence_words(tables: Sequence[MetricTable]) -> str:
    """Name the confidence of the ratios' intervals: `95%`, or `95–98.3%` where it differs.

    It differs with several variants, where Holm's correction asks more of the clearer differences.
    """
    ratios = [
        comparison.ratio for comparison in chain.from_iterable(table.compared for table in tables)
    ]
    levels = {ratio.confidence for ratio in ratios if ratio}
    low, high = min(levels, default=0.95), max(levels, default=0.95)
    if low == high:
        return text.confidence_level(low)
    return f"{text.confidence_level(low).removesuffix('%')}{text.DASH}{text.confidence_level(high)}"


def ci_heading(table: MetricTable) -> str:
    """Name the intervals of a table's ratios: `95% CI`, or `joint 95% CI`."""
    levels = [comparison.ratio.confidence for comparison in table.compared if comparison.ratio]
    return text.ci_level(max(levels, default=0.0))


def reasons(table: MetricTable) -> Iterator[tuple[str, str]]:
    """Say what each verdict rests on; where there is none, the answer has said why."""
    for comparison in table.compared:
        if comparison.verdict is not Verdict.INVALID:
            yield (
                f"{comparison.a} against {comparison.b}",
                " ".join([comparison.why, *bias_sentences(comparison)]),
            )


def ratio_columns(tables: Sequence[MetricTable], verdict: str = "") -> list[Column]:
    """Give the columns of variants with their values, ratios, and a verdict where there is one."""
    return [
        Column("variant", "name", obvious=True),
        Column("value", "value"),
        Column("95% CI", "range", spare=True, below="within a round", below_means=OF_TIMES),
        Column("ratio", "ratio"),
        Column(
            f"{confidence_words(tables)} CI",
            "range",
            below="worst case",
            below_means=WORST_CASE,
        ),
        Column(verdict, "verdict"),
    ]


def variant_rows(
    table: MetricTable, *, decides: bool, ranked: bool = False
) -> Iterator[list[Cell | str]]:
    """Give the variants for these columns, of a ranking after their ranks."""
    for row in table.rows:
        value, around = value_and_interval(row.value)
        yield [
            *([row.rank] if ranked else []),
            row.variant,
            value,
            Cell(around, soft=True, below=within_a_round(row.value)),
            *_compared(row.comparison, _baseline(table, row), decides=decides),
        ]


def _baseline(table: MetricTable, row: Row) -> str:
    """Name what the others are divided by; nothing where none are."""
    return ("first" if row.rank else "baseline") if table.compared else ""


def _compared(comparison: Comparison | None, baseline: str, *, decides: bool) -> list[Cell | str]:
    if comparison is None:
        return ["", "", Cell(baseline, soft=True)]
    ratio, interval = ratio_and_interval(comparison)
    return [
        Cell(ratio, strong=decides),
        Cell(interval, soft=True, below=worst_case_words(comparison)),
        _verdict(comparison) if decides else side_word(comparison),
    ]


def _verdict(comparison: Comparison) -> Cell:
    return verdict_cell(comparison.verdict, verdict_word(comparison.verdict, comparison.metric))


def other_metrics_table(tables: Sequence[MetricTable], *, better: bool = False) -> Table:
    """Give what else was measured, metric by metric; `better` says which way that is."""
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
    """Give what was looked at, in groups, as each variant had it."""
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
