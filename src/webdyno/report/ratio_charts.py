"""The charts of ratios: how much an arm differs from the baseline, and how sure that is.

At one point the ratios stand below each other; of several points they are drawn along the first
factor, as every metric is there (`factor_charts`).
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from webdyno.model import format as text
from webdyno.model.judgement import Comparison, Verdict
from webdyno.report import bias
from webdyno.report.drawing import (
    NARROW_PX,
    TOLD,
    Figure,
    Layers,
    Panel,
    Rows,
    css_variable,
    drawn,
    values,
)
from webdyno.report.view import MetricTable, confidence
from webdyno.report.words import SIGNS, ratio_and_interval

TONES = {
    Verdict.FASTER: "better",
    Verdict.SLOWER: "worse",
    Verdict.EQUIVALENT: "even",
    Verdict.UNDECIDED: "open",
    Verdict.INVALID: "broken",
    Verdict.INCOMPLETE: "open",
    Verdict.MEASURED: "even",
}
ROW_PX = 46
"""Height of a ratio with its label above it."""
ABOVE_PX = -11
RESULT_PX = 150
"""So much of a row's line is left to its result."""
MOST_ROOM = 4.0
"""How far beyond the outermost estimates an axis goes; wider intervals are cut off there."""
FACTOR = "format(datum.value, '.4~g') + '×'"


def ratio_figure(table: MetricTable) -> Figure | None:
    """Draw the ratios of one metric at one point, each on its band of equivalence."""
    compared = table.compared
    if not compared:
        return None
    against = compared[0].b
    rows = [{"row": place} | ratio_row(found) for place, found in enumerate(compared)]
    reach = (
        " The thin line reaches to where the ratio can lie with all bounds of disturbance counted; "
        "the verdict rests on that."
        if table.bounded
        else ""
    )
    return Figure(
        name="ratios",
        title="How much, and how sure",
        caption=f"{table.title}: each arm ÷ {against}, with {confidence([table])} intervals. "
        f"{band_words(compared)} An interval inside it means equivalent; one clear of 1 shows a "
        f"difference; one that is neither leaves the question open.{reach}",
        panels=(ratio_panel("ratios", rows, against),),
        by_arm=False,
    )


def ratio_panel(name: str, rows: Rows, against: str) -> Panel:
    """Draw ratios below each other; each row is one of `ratio_row`, with its place as `row`."""
    chart, height_px = _chart(rows, against), ROW_PX * len(rows)
    return Panel(
        name=name,
        alt="; ".join(row["told"] for row in rows),
        svg=drawn(chart, height=height_px),
        narrow_svg=drawn(chart, height=height_px, width=NARROW_PX),
    )


def ratio_row(found: Comparison) -> dict[str, Any]:
    """Give a ratio with its interval, its band of equivalence, and all that is told of it."""
    assert found.ratio is not None  # noqa: S101 (asked for by the caller)
    ratio, interval = ratio_and_interval(found)
    sure, wide = found.sure or found.ratio, bias.beside(found)
    bounds = f", with all bounds {wide}" if wide else ""
    return {
        "label": f"{found.a} ÷ {found.b}",
        "result": f"{ratio}  {SIGNS[found.verdict]} {found.verdict}",
        "told": f"{found.a} ÷ {found.b}: {ratio} ({interval}{bounds}), {found.verdict}",
        "tone": str(found.verdict),
        "ratio": found.ratio.estimate,
        "low": found.ratio.low,
        "high": found.ratio.high,
        "sure_low": sure.low,
        "sure_high": sure.high,
        "even_low": 1 / (1 + found.delta),
        "even_high": 1 + found.delta,
    }


def band_words(compared: Sequence[Comparison]) -> str:
    """Say what the shaded band is: the judge's own delta, which A/A arms may have widened."""
    deltas = sorted({found.delta for found in compared})
    widths = " or ".join(f"±{text.percent(delta)}" for delta in deltas)
    return f"The shaded band, {widths} around 1, holds differences too small to matter."


def _chart(rows: Rows, against: str) -> Layers:
    base = alt.Chart(values(rows)).encode(y=alt.Y("row:O", axis=None))
    scale = alt.Scale(type="log", domain=_reach(rows), nice=False, clamp=True, padding=18)
    axis = alt.Axis(labelExpr=FACTOR, tickCount=6, labelOverlap="greedy", labelSeparation=8)
    title = f"Ratio to {against} (log scale)"

    def across(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    tones = alt.Scale(domain=list(TONES), range=[css_variable(tone) for tone in TONES.values()])
    shown = base.encode(color=alt.Color("tone:N", scale=tones, legend=None))
    one = alt.Chart(values([{"one": 1}])).mark_rule(
        color=css_variable("ink-soft"), strokeWidth=1, aria=False
    )
    return alt.layer(
        base.mark_rect(color=css_variable("band"), aria=False).encode(
            x=across("even_low"), x2="even_high:Q"
        ),
        one.encode(x=across("one")),
        shown.mark_rule(strokeWidth=1, yOffset=8, aria=False).encode(
            x=across("sure_low"), x2="sure_high:Q"
        ),
        shown.mark_rule(strokeWidth=3, yOffset=8, strokeCap="round", aria=False).encode(
            x=across("low"), x2="high:Q"
        ),
        shown.mark_point(filled=True, size=90, opacity=1, yOffset=8).encode(
            x=across("ratio"), description=TOLD
        ),
        base.mark_text(
            align="left", dy=ABOVE_PX, aria=False, limit=alt.ExprRef(f"width - {RESULT_PX}")
        ).encode(x=alt.value(0), text="label:N"),
        shown.mark_text(align="right", dy=ABOVE_PX, aria=False, fontWeight=600).encode(
            x=alt.value("width"), text="result:N"
        ),
    )


def _reach(rows: Rows) -> list[float]:
    """Give the ends of the axis: all bands and intervals, unless those are very wide."""
    ratios = [row["ratio"] for row in rows]
    low = max(min(row["sure_low"] for row in rows), min(ratios) / MOST_ROOM)
    high = min(max(row["sure_high"] for row in rows), max(ratios) * MOST_ROOM)
    return [
        min(low, *(row["even_low"] for row in rows)),
        max(high, *(row["even_high"] for row in rows)),
    ]
