"""Charts of ratios: how much each variant differs from the baseline, and how sure that is.

At one point they stand below each other; of several points they are drawn along the first factor
(`factor_charts`).
"""

from collections.abc import Iterable
from math import ceil, floor, log, log10
from typing import Any

import altair as alt

from webdyno.comparison.sentences import verdict_word
from webdyno.core import format as text
from webdyno.core.judgement import Comparison, Verdict
from webdyno.media.document import Figure, Panel
from webdyno.media.drawing import TOOLTIP, Layers, Rows, css_variable, panel, values
from webdyno.report.show import MetricTable
from webdyno.report.tables import ci_heading
from webdyno.report.words import SIGNS, ratio_and_interval, sure_ratio, worst_case_words

TONES = {
    Verdict.FASTER: "better",
    Verdict.SLOWER: "worse",
    Verdict.EQUIVALENT: "even",
    Verdict.INCONCLUSIVE: "open",
    Verdict.INVALID: "broken",
    Verdict.INCOMPLETE: "open",
    Verdict.MEASURED: "even",
}
ROW_PX, ROUNDS_PX = 48, 14
"""Height of a ratio with its label above it, and of the line of its rounds between the two."""
LABEL_PX, BAR_PX, MARGIN_PX = 12, 33, 12
"""Where label and bar are in a row without rounds, and how far the band reaches around the bar."""
RESULT_PX = 150
"""So much of a row's line is left to its result."""
MOST_ROOM = 4.0
"""How far beyond the outermost estimates an axis goes; wider intervals are cut off there."""
ARROWS = ("M-2.2,0L0,-1V1Z", "M2.2,0L0,-1V1Z")
"""Heads that point left and right; the interval continues there."""
FACTOR = "format(datum.value, '.4~g') + '×'"
WIDE, APART = 1.8, 0.13
"""Times its begin that an axis reaches to have its labels chosen, and what share of it (ln) has
room for one of them."""
DIGITS = (1, 2, 5, 1.5, 3, 4, 6, 7, 8, 9, 1.2)
"""Of an axis's labels, those first that have room first."""


def ratio_figure(table: MetricTable) -> Figure | None:
    """Draw the ratios of one metric at one point, each on its band of equivalence."""
    compared = table.comparisons
    if not compared:
        return None
    reach = ""
    if any(comparison.worst_case for comparison in compared):
        reach = " The thin line is the worst-case CI, which counts all interference; the verdict "
        reach += "rests on it."
    rows = [*map(ratio_row, compared)]
    is_cut = arrowheads(rows, _reach(rows))
    arrow = " An arrowhead: it continues beyond the axis." if is_cut else ""
    return Figure(
        name="ratios",
        title="",
        caption=f"Dot and bar: the ratio with its {ci_heading(table)}. Small dots: the "
        f"rounds.{arrow}",
        note=f"{band_words(each.delta for each in compared)} A CI inside it means equivalent; "
        f"one clear of 1 shows a difference; any other is inconclusive.{reach}",
        panels=(ratio_panel("ratios", rows, compared[0].b),),
        by_variant=False,
    )


def ratio_panel(name: str, rows: Rows, against: str) -> Panel:
    """Draw ratios below each other; each row is one of `ratio_row`."""
    row_px = ROW_PX + ROUNDS_PX * any(row["rounds"] for row in rows)
    placed = []
    for number, row in enumerate(rows):
        top_px, bar_px = number * row_px, (number + 1) * row_px + BAR_PX - ROW_PX
        places = {
            "label_px": top_px + LABEL_PX,
            "band_px": top_px + BAR_PX - MARGIN_PX,
            "rounds_px": bar_px - ROUNDS_PX,
            "bar_px": bar_px,
            "end_px": bar_px + MARGIN_PX,
        }
        placed.append(row | places)
    height_px = row_px * len(rows)
    chart = _chart(placed, against, height_px)
    return panel(name, "; ".join(row["told"] for row in rows), chart, height=height_px)


def ratio_row(comparison: Comparison) -> dict[str, Any]:
    """Return a ratio with its interval, its band of equivalence, and all that is said of it."""
    assert comparison.ratio is not None  # noqa: S101 (requested by the caller)
    ratio, (_, interval) = sure_ratio(comparison), ratio_and_interval(comparison)
    decisive, wide = comparison.decisive or comparison.ratio, worst_case_words(comparison)
    bounds = f", worst case {wide}" if wide else ""
    subject, verdict = f"{comparison.a} ÷ {comparison.b}", comparison.verdict
    came_out = f"{SIGNS[verdict]} {verdict_word(verdict, comparison.metric)}"
    return {
        "label": comparison.a,
        "subject": subject,
        "result": came_out if verdict is Verdict.INVALID else f"{ratio}  {came_out}",
        "told": f"{subject}: {ratio} ({interval}{bounds}), {verdict}",
        "tone": str(verdict),
        "ratio": comparison.ratio.estimate,
        "low": comparison.ratio.low,
        "high": comparison.ratio.high,
        "decisive_low": decisive.low,
        "decisive_high": decisive.high,
        "even_low": 1 / (1 + comparison.delta),
        "even_high": 1 + comparison.delta,
        "rounds": list(zip(comparison.rounds, comparison.by_round, strict=True)),
    }


def band_words(deltas: Iterable[float]) -> str:
    """Return what the shaded band is: the verdict's own delta, which A/A variants may widen."""
    widths = " or ".join(f"±{text.percent(delta)}" for delta in sorted(set(deltas)))
    return f"The shaded band, {widths} around 1, holds differences below the practical threshold."


def _chart(rows: Rows, against: str, height_px: int) -> Layers:
    reach = _reach(rows)
    base = alt.Chart(values([_within(row, reach) for row in rows]))
    scale = alt.Scale(type="log", domain=reach, nice=False, clamp=True, padding=18)
    axis = ratio_axis(*reach)
    title = f"Ratio to {against} (log scale)"

    def across(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    def down(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", axis=None, scale=alt.Scale(domain=[height_px, 0], nice=False))

    tones = alt.Scale(domain=list(TONES), range=[css_variable(tone) for tone in TONES.values()])
    color = alt.Color("tone:N", scale=tones, legend=None)
    shown = base.encode(color=color)
    band = base.encode(y=down("band_px"), y2="end_px:Q")
    rounds = [
        {
            "ratio": ratio,
            "rounds_px": row["rounds_px"],
            "tone": row["tone"],
            "told": f"{row['subject']}, round {number}: {text.significant(ratio, 3)}{text.TIMES}",
        }
        for row in rows
        for number, ratio in row["rounds"]
    ]
    return alt.layer(
        band.mark_rect(color=css_variable("band"), aria=False).encode(
            x=across("even_low"), x2="even_high:Q"
        ),
        band.transform_calculate(one="1")
        .mark_rule(color=css_variable("ink-soft"), strokeWidth=1, aria=False)
        .encode(x=across("one")),
        alt.Chart(values(rounds))
        .mark_point(filled=True, size=26, opacity=0.6)
        .encode(x=across("ratio"), y=down("rounds_px"), color=color, description=TOOLTIP),
        shown.mark_rule(strokeWidth=1, aria=False).encode(
            x=across("decisive_low"), x2="decisive_high:Q", y=down("bar_px")
        ),
        shown.mark_rule(strokeWidth=3, strokeCap="round", aria=False).encode(
            x=across("low"), x2="high:Q", y=down("bar_px")
        ),
        alt.Chart(values(arrowheads(rows, reach)))
        .mark_point(filled=True, size=110, opacity=1, aria=False)
        .encode(
            x=across("end"),
            y=down("bar_px"),
            color=color,
            shape=alt.Shape("shape:N", scale=None),
        ),
        shown.mark_point(filled=True, size=90, opacity=1).encode(
            x=across("ratio"), y=down("bar_px"), description=TOOLTIP
        ),
        base.mark_text(align="left", aria=False, limit=alt.ExprRef(f"width - {RESULT_PX}")).encode(
            x=alt.value(0), y=down("label_px"), text="label:N"
        ),
        shown.mark_text(align="right", aria=False, fontWeight=600).encode(
            x=alt.value("width"), y=down("label_px"), text="result:N"
        ),
    )


def ratio_axis(low: float, high: float) -> alt.Axis:
    """Return an axis of ratios; that of a wide range has a label at 1, whatever else has room."""
    return alt.Axis(
        labelExpr=FACTOR,
        tickCount=6,
        labelOverlap="greedy",
        labelSeparation=8,
        values=_ticks(low, high) if high / low > WIDE else alt.Undefined,
    )


def _ticks(low: float, high: float) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = [digit * 10.0**power for digit in DIGITS for power in powers]
    steps.sort(key=lambda step: step != 1)
    chosen = list[float]()
    for step in steps:
        is_apart = all(abs(log(step / other)) > APART * log(high / low) for other in chosen)
        if low <= step <= high and is_apart:
            chosen.append(step)
    return sorted(chosen)


def arrowheads(rows: Rows, reach: list[float]) -> Rows:
    """Return where intervals continue beyond an axis's ends: a mark for each."""
    low, high = reach
    left = [row | {"end": low, "shape": ARROWS[0]} for row in rows if row["decisive_low"] < low]
    right = [row | {"end": high, "shape": ARROWS[1]} for row in rows if row["decisive_high"] > high]
    return left + right


def _within(row: dict[str, Any], reach: list[float]) -> dict[str, Any]:
    """Return a row with its intervals up to the axis's ends."""
    low, high = reach
    ends = ("low", "high", "decisive_low", "decisive_high")
    return row | {end: min(max(row[end], low), high) for end in ends}


def _reach(rows: Rows) -> list[float]:
    """Return the ends of the axis: all bands, rounds and intervals, unless those are very wide."""
    ratios = [row["ratio"] for row in rows]
    by_round = [ratio for row in rows for _, ratio in row["rounds"]]
    low = min([*(row["decisive_low"] for row in rows), *by_round])
    high = max([*(row["decisive_high"] for row in rows), *by_round])
    return [
        min(max(low, min(ratios) / MOST_ROOM), *(row["even_low"] for row in rows)),
        max(min(high, max(ratios) * MOST_ROOM), *(row["even_high"] for row in rows)),
    ]
