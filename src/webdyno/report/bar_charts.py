"""Bars of each variant's values, from zero, with their confidence intervals."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import altair as alt

from webdyno.core.metrics import CPU_TIME, THROUGHPUT
from webdyno.media.document import Figure, Panel
from webdyno.media.drawing import (
    TOOLTIP,
    Layers,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.show import MetricTable, PointView, Row
from webdyno.report.tables import least_sign, value_words
from webdyno.report.words import metric_title, value_and_interval

ROW_PX, LABEL_PX, BAR_PX, END_PX = 44, 9, 20, 36
"""Height of a bar with its label above it; where the label, the bar's top and its end are in it."""
MOST_ROOM = 1.6
"""How far beyond the longest bar an axis goes; wider intervals are cut off there."""
VALUE_PX = 110
"""So much of a row's line is left to its value."""


def bar_figure(point: PointView) -> Figure | None:
    """Draw what decides and CPU per request; of a point without two variants to compare none.

    Ranks are drawn by their own question.
    """
    if point.deciding and point.deciding.has_ranks:
        return None
    drawn = [table for table in _drawn(point) if len(bar_rows(point, table)) > 1]
    panels = tuple(bar_panel(point, table, is_half=len(drawn) > 1) for table in drawn)
    if not panels:
        return None
    return Figure(
        name="bars",
        title="",
        caption="",
        panels=panels,
        by_variant=False,
    )


def _drawn(point: PointView) -> list[MetricTable]:
    if point.deciding is None:
        return []
    decides = point.deciding.metric.name
    others = {table.metric.name: table for table in point.alongside}
    further = others.get(THROUGHPUT if decides == CPU_TIME else CPU_TIME)
    return [table for table in (point.deciding, further) if table and table.informs]


def bar_panel(point: PointView, table: MetricTable, *, is_half: bool) -> Panel:
    """Draw one metric; the variants are in the order of the table."""
    metric, rows = table.metric, bar_rows(point, table)
    heading = (
        f"{metric_title(metric)} ({'more' if metric.better == 'higher' else 'less'} is better)"
    )
    chart = _chart(rows, point.variants)
    alt_text = "; ".join(row["told"] for row in rows)
    return panel(
        f"bars-{metric.name}",
        f"{heading}: {alt_text}.",
        chart,
        heading=heading,
        height=ROW_PX * len(rows),
        is_half=is_half,
    )


def bar_rows(point: PointView, table: MetricTable) -> Rows:
    """Return a row for each variant with a value that may be shown."""
    known = [row for row in table.rows if row.valid_value and row.valid_value.by_round]
    return [_bar(point, table, row, number * ROW_PX) for number, row in enumerate(known)]


def _bar(point: PointView, table: MetricTable, row: Row, top_px: int) -> dict[str, Any]:
    shown = least_sign(point, table, row) + value_words(table.metric, row.value)
    _, around = value_and_interval(row.value)
    assert row.value is not None  # noqa: S101 (only these are drawn)
    interval = row.value.interval
    value = interval.estimate if interval else row.value.by_round[0]
    return {
        "variant": row.variant,
        "label": row.variant,
        "shown": shown,
        "told": f"{row.variant}: {shown}" + (f" (95% CI {around})" if around else ""),
        "zero": 0,
        "value": value,
        "low": interval.low if interval else value,
        "high": interval.high if interval else value,
        "label_px": top_px + LABEL_PX,
        "bar_px": top_px + BAR_PX,
        "middle_px": top_px + (BAR_PX + END_PX) / 2,
        "end_px": top_px + END_PX,
    }


def _chart(rows: Rows, variants: list[str]) -> Layers:
    across = alt.Scale(domain=[0, reach_of(rows)], nice=False, clamp=True)
    height = alt.Scale(domain=[ROW_PX * len(rows), 0], nice=False)
    base = alt.Chart(values(rows))

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", axis=None, scale=across)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", axis=None, scale=height)

    return alt.layer(
        *bars(base, variants, x, y),
        base.mark_text(align="left", aria=False, limit=alt.ExprRef(f"width - {VALUE_PX}")).encode(
            x=alt.value(0), y=y("label_px"), text="label:N"
        ),
        base.mark_text(align="right", aria=False, fontWeight=600).encode(
            x=alt.value("width"), y=y("label_px"), text="shown:N"
        ),
    )


def reach_of(rows: Rows) -> float:
    """Return how far an axis goes; mark in the rows whose intervals are cut off there."""
    longest = max(row["value"] for row in rows)
    reach: float = min(max(row["high"] for row in rows), MOST_ROOM * longest) or 1.0
    for row in rows:
        row["is_cut"] = row["high"] > reach
    return reach


def bars(
    base: alt.Chart, variants: Sequence[str], x: Callable[[str], alt.X], y: Callable[[str], alt.Y]
) -> Iterator[alt.Chart]:
    """Yield bars with their intervals; an arrowhead stands where one is cut off."""
    color, _, _ = variant_encodings(variants)
    ink = css_variable("ink")
    yield base.mark_rect().encode(
        x=x("zero"),
        x2="value:Q",
        y=y("bar_px"),
        y2="end_px:Q",
        color=color,
        description=TOOLTIP,
    )
    yield base.mark_rule(strokeWidth=1.5, color=ink, aria=False).encode(
        x=x("low"), x2="high:Q", y=y("middle_px")
    )
    for end in ("low", "high"):
        yield (
            base.mark_tick(thickness=1.5, size=9, color=ink, aria=False, orient="vertical")
            .transform_filter("!datum.is_cut" if end == "high" else "true")
            .encode(x=x(end), y=y("middle_px"))
        )
    yield (
        base.transform_filter("datum.is_cut")
        .mark_point(shape="triangle-right", filled=True, size=60, opacity=1, color=ink, aria=False)
        .encode(x=x("high"), y=y("middle_px"))
    )
