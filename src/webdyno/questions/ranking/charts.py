"""The charts of a ranking: sorted bars with their ranks, and what each variant's CPU time is."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import altair as alt

from webdyno.comparison.sentences import places_of
from webdyno.core import format as text
from webdyno.core.metrics import CPU_TIME
from webdyno.media.document import Figure
from webdyno.media.drawing import (
    TOOLTIP,
    Layers,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.bar_charts import bar_rows, bars, reach_of
from webdyno.report.show import PointView
from webdyno.report.words import metric_title

HEAD_PX, ROW_PX = 22, 40
GAP_PX = 2
"""Above and below the shade of a tie, so that two of them are seen as two."""
LABEL_PX, BAR_PX, END_PX = 10, 20, 36
"""Where in a row its label is, and its bar from top to end."""
COLUMNS_PX = {"rank": 0, "cpu": 56, "shown": 132}
"""How far from the right edge the columns next to the bars end."""
COLUMNS_WIDTH_PX = 200
PARTS = {"own code": 1.0, "kernel": 0.45}
"""Of CPU time, each with the opacity in which it is drawn."""
SHARES_PX = 26


def ranking_figure(point: PointView) -> Figure | None:
    """Draw what decides as bars in the order of ranks; ties are shaded."""
    table, ranking = point.deciding, point.judgement.ranking
    if table is None or ranking is None:
        return None
    cpu = _cpu_words(point)
    rows = [
        row
        | {
            "rank": table_row.rank,
            "cpu": cpu.get(table_row.variant, ""),
            "told": f"{table_row.rank}: {row['told']}",
        }
        for row in bar_rows(point, table)
        for table_row in table.rows
        if table_row.variant == row["variant"]
    ]
    if not rows:
        return None
    for number, row in enumerate(rows):
        row |= _places(HEAD_PX + number * ROW_PX)
    place = {row["variant"]: row["top_px"] for row in rows}
    groups = [
        [place[rank.variant] for rank in ranks if rank.variant in place]
        for ranks in places_of(ranking)
    ]
    ties: Rows = [
        {"top_px": min(group) + GAP_PX, "bottom_px": max(group) + ROW_PX - GAP_PX}
        for group in groups
        if len(group) > 1
    ]
    height = HEAD_PX + ROW_PX * len(rows)
    better = "more" if table.metric.better == "higher" else "less"
    heading = f"{metric_title(table.metric)} ({better} is better)"
    shaded = " Shaded: their order is open." if ties else ""
    return Figure(
        name="ranking",
        title=heading,
        caption=f"Bars with the 95% CI of each value by itself.{shaded}",
        panels=(
            panel(
                "ranking",
                f"{heading}: {'; '.join(row['told'] for row in rows)}.",
                _chart(rows, ties, point.variants, height),
                height=height,
            ),
        ),
        by_variant=False,
    )


def _cpu_words(point: PointView) -> dict[str, str]:
    known = (value for value in point.judgement.variants if value.metric == CPU_TIME)
    return {
        value.variant: text.latency(value.interval.estimate) for value in known if value.interval
    }


def _places(top_px: float) -> dict[str, float]:
    return {
        "top_px": top_px,
        "label_px": top_px + LABEL_PX,
        "bar_px": top_px + BAR_PX,
        "middle_px": top_px + (BAR_PX + END_PX) / 2,
        "end_px": top_px + END_PX,
    }


def _chart(rows: Rows, ties: Rows, variants: Sequence[str], height_px: int) -> Layers:
    room: list[Any] = [0, {"expr": f"width - {COLUMNS_WIDTH_PX}"}]
    across = alt.Scale(domain=[0, reach_of(rows)], range=room, nice=False, clamp=True)
    base = alt.Chart(values(rows))

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", axis=None, scale=across)

    def y(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q", axis=None, scale=alt.Scale(domain=[height_px, 0], nice=False, zero=False)
        )

    return alt.layer(
        alt.Chart(values(ties))
        .mark_rect(color=css_variable("band"), aria=False)
        .encode(x=alt.value(-2), x2=alt.value("width"), y=y("top_px"), y2="bottom_px:Q"),
        *bars(base, variants, x, y),
        base.mark_text(align="left", aria=False, limit=alt.ExprRef("width")).encode(
            x=alt.value(0), y=y("label_px"), text="variant:N"
        ),
        *_columns(base, y("middle_px"), rows),
    )


def _columns(base: alt.Chart, middle: alt.Y, rows: Rows) -> Iterator[alt.Chart]:
    headings = {"rank": "rank", "cpu": "CPU/request", "shown": "value"}
    for field, away_px in COLUMNS_PX.items():
        if not any(row[field] for row in rows):
            continue
        edge = alt.ExprRef(f"width - {away_px}")
        weight: Literal[400, 600] = 600 if field == "shown" else 400
        yield base.mark_text(align="right", aria=False, fontWeight=weight, x=edge).encode(
            y=middle, text=f"{field}:N"
        )
        yield (
            alt.Chart(values([{}]))
            .mark_text(
                align="right", aria=False, fontSize=11, color=css_variable("ink-soft"), x=edge
            )
            .encode(y=alt.value(HEAD_PX / 2), text=alt.value(headings[field]))
        )


def cpu_parts_figure(point: PointView) -> Figure | None:
    """Draw each variant's CPU time per request in its parts, in the order of ranks."""
    rows = cpu_parts(point)
    if not rows:
        return None
    height = SHARES_PX * len({row["variant"] for row in rows})
    about = "; ".join(dict.fromkeys(str(row["told"]) for row in rows))
    order = [
        variant for variant in point.variants if any(row["variant"] == variant for row in rows)
    ]
    chart = alt.layer(
        alt.Chart(values(rows))
        .mark_bar(height=16)
        .encode(
            x=alt.X("from:Q", title="CPU per request, µs").axis(tickCount=5),
            x2="to:Q",
            y=alt.Y("variant:N", sort=order, title=None).axis(labelLimit=140, ticks=False),
            color=variant_encodings(point.variants)[0],
            opacity=alt.Opacity("part:N", legend=None).scale(
                domain=list(PARTS), range=list(PARTS.values())
            ),
            description=TOOLTIP,
        )
    )
    return Figure(
        name="cpu-parts",
        title="Where the servers' CPU time goes",
        caption="Per request. Full color: the servers' own code; pale: the kernel.",
        panels=(panel("cpu-parts", f"CPU time per request: {about}.", chart, height=height),),
        by_variant=False,
    )


def cpu_parts(point: PointView) -> Rows:
    """Return a row for each part of each variant's CPU time; the parts add up to what it costs."""
    rows: list[dict[str, Any]] = []
    shown = filter(None, [point.deciding, *point.alongside])
    by_cpu = (table for table in shown if table.metric.name == CPU_TIME)
    costs = {row.variant: row.valid_value for table in by_cpu for row in table.rows}
    for variant in point.variants:
        slots = point.data.of_variant(variant)
        own_s = sum(slot.servers.cpu_user_s for slot in slots)
        kernel_s = sum(slot.servers.cpu_sys_s for slot in slots)
        cost = costs.get(variant)
        if cost is None or cost.interval is None or not own_s + kernel_s:
            continue
        us = cost.interval.estimate
        own_us = us * own_s / (own_s + kernel_s)
        said = (
            f"{variant}: {text.latency(own_us)} own code, {text.latency(us - own_us)} in the kernel"
        )
        for part, begin_us, end_us in (("own code", 0.0, own_us), ("kernel", own_us, us)):
            ends = {"from": float(f"{begin_us:.5g}"), "to": float(f"{end_us:.5g}")}
            rows.append({"variant": variant, "part": part, "told": said} | ends)
    return rows
