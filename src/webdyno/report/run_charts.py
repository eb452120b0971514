"""The charts of a run as a whole: ratios, and flame graphs of variants whose servers were sampled.

Ratios say how much a variant differs from the baseline, and how sure that is. At one point they
stand below each other; of several points they are drawn along the first factor (`factor_charts`).

A flame graph's box is a call, as wide as the CPU time that a request spends in it and in what it
calls (Gregg, "The Flame Graph", Communications of the ACM 2016), in microseconds per request for
all variants. Its colour says whether all calls of its name take more or less than in the variant it
is compared with: other programs call the kernel by other ways.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt

from webdyno.model import format as text
from webdyno.model.errors import UserError
from webdyno.model.files import MIB, read_given
from webdyno.model.judgement import Comparison, Verdict
from webdyno.model.run import read_stacks, stacks_file
from webdyno.report.document import Figure, Panel
from webdyno.report.drawing import (
    NARROW_PX,
    TOLD,
    WIDTH_PX,
    Layers,
    Rows,
    css_variable,
    drawn,
    values,
)
from webdyno.report.ratio_tables import MetricTable, confidence_words
from webdyno.report.view import PointView
from webdyno.report.words import SIGNS, ratio_and_interval, worst_case_words

TONES = {
    Verdict.FASTER: "better",
    Verdict.SLOWER: "worse",
    Verdict.EQUIVALENT: "even",
    Verdict.INCONCLUSIVE: "open",
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
        " The thin line is the worst-case CI, which counts all interference; the verdict rests on "
        "it."
        if any(it.worst_case for it in compared)
        else ""
    )
    return Figure(
        name="ratios",
        title="How much, and how sure",
        caption=f"{table.title}: each variant ÷ {against}, with {confidence_words([table])} "
        f"intervals. {band_words(compared)} An interval inside it means equivalent; one clear of "
        f"1 shows a difference; any other is inconclusive.{reach}",
        panels=(ratio_panel("ratios", rows, against),),
        by_variant=False,
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
    assert found.ratio is not None  # noqa: S101 (requested by the caller)
    ratio, interval = ratio_and_interval(found)
    decisive, wide = found.decisive or found.ratio, worst_case_words(found)
    bounds = f", worst case {wide}" if wide else ""
    return {
        "label": f"{found.a} ÷ {found.b}",
        "result": f"{ratio}  {SIGNS[found.verdict]} {found.verdict}",
        "told": f"{found.a} ÷ {found.b}: {ratio} ({interval}{bounds}), {found.verdict}",
        "tone": str(found.verdict),
        "ratio": found.ratio.estimate,
        "low": found.ratio.low,
        "high": found.ratio.high,
        "decisive_low": decisive.low,
        "decisive_high": decisive.high,
        "even_low": 1 / (1 + found.delta),
        "even_high": 1 + found.delta,
    }


def band_words(compared: Sequence[Comparison]) -> str:
    """Say what the shaded band is: the judge's own delta, which A/A variants may have widened."""
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
            x=across("decisive_low"), x2="decisive_high:Q"
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
    low = max(min(row["decisive_low"] for row in rows), min(ratios) / MOST_ROOM)
    high = min(max(row["decisive_high"] for row in rows), max(ratios) * MOST_ROOM)
    return [
        min(low, *(row["even_low"] for row in rows)),
        max(high, *(row["even_high"] for row in rows)),
    ]


CALL_PX, LETTER_PX = 17, 6.6
NARROWEST = 0.01
"""Share of the widest variant that a box needs to be drawn: spires of a few pixels tell nothing."""
MOST_BYTES = 64 * MIB
NAMELESS = "[unknown]"
ALIKE = 0.1
"""Share of the larger of two times by which they have to differ to be coloured."""
COLOURS = {
    "more": css_variable("worse"),
    "less": css_variable("better"),
    "alike": css_variable("open"),
}

Call = tuple[str, ...]
"""The stack down to it, the outermost call first."""


class Box(NamedTuple):
    """A call in a flame graph."""

    call: Call
    begin_us: float
    us: float


def flame_figure(run: Path, point: PointView) -> Figure | None:
    """Draw the variants beside each other; None where no stacks were kept of two of them."""
    whole_us: dict[str, float] = {}
    against: dict[str, str] = {}
    for it in point.judgement.explanations:
        if it.by_samples:
            whole_us |= {it.b: it.whole.b_us, it.a: it.whole.a_us}
            against |= {it.a: it.b}
            against.setdefault(it.b, it.a)
    stacks = {variant: kept for variant in whole_us if (kept := _kept(run, variant))}
    if len(stacks) < 2:
        return None
    by_name = {variant: spent_by_name_us(it, whole_us[variant]) for variant, it in stacks.items()}
    widest_us = max(whole_us[variant] for variant in stacks)
    panels = [
        _panel(
            number,
            variant,
            spent_us(stacks[variant], whole_us[variant]),
            _Compared(by_name[variant], by_name.get(against[variant], {})),
            widest_us,
        )
        for number, variant in enumerate(stacks)
    ]
    return Figure(
        name="flames",
        title="What the servers' CPUs did",
        caption="A box is a call, as wide as the CPU time that a request spends in it and in what "
        "it calls, as sampled: on one scale, microseconds per request. In the color of worse: all "
        "calls of that name take more than in the variant it is compared with, or are only here; "
        "in the color of better: less.",
        panels=tuple(panels),
        by_variant=False,
    )


def _kept(run: Path, variant: str) -> Counter[str]:
    try:
        kept = read_given(stacks_file(run, variant), MOST_BYTES)
    except (UserError, OSError):
        return Counter()
    return read_stacks(kept.decode(errors="replace"))


def spent_us(stacks: Mapping[str, int], whole_us: float) -> dict[Call, float]:
    """Give the time per request in each call and what it calls; of all of them it is `whole_us`.

    Calls of themselves are one, and so are those above each other that have no name.
    """
    samples = sum(stacks.values())
    found = Counter[Call]()
    for stack, count in stacks.items():
        calls = tuple(name for name, _ in groupby(stack.split(";")))
        for depth in range(1, len(calls) + 1):
            found[calls[:depth]] += count
    return {call: count / samples * whole_us for call, count in found.items()}


def spent_by_name_us(stacks: Mapping[str, int], whole_us: float) -> dict[str, float]:
    """Give the time per request in all calls of a name and in what they call, each sample once."""
    samples = sum(stacks.values())
    found = Counter[str]()
    for stack, count in stacks.items():
        for name in set(stack.split(";")):
            found[name] += count
    return {name: count / samples * whole_us for name, count in found.items()}


class _Compared(NamedTuple):
    """The times per request by name: here, and in the variant that it is compared with."""

    here: Mapping[str, float]
    there: Mapping[str, float]


def boxes(spent: Mapping[Call, float], narrowest_us: float) -> Iterator[Box]:
    """Place the calls: each above its caller, those of one caller beside each other by name."""
    begins: dict[Call, float] = {}
    for call in sorted(spent):
        caller = call[:-1]
        begin_us = begins.get(caller, 0.0)
        begins[call] = begin_us
        begins[caller] = begin_us + spent[call]
        if spent[call] >= narrowest_us:
            yield Box(call, begin_us, spent[call])


def _panel(
    number: int,
    variant: str,
    spent: Mapping[Call, float],
    by_name: _Compared,
    widest_us: float,
) -> Panel:
    placed = list(boxes(spent, NARROWEST * widest_us))
    rows = [_row(box, by_name, widest_us) for box in placed]
    depth = max(len(box.call) for box in placed)
    x = alt.X("begin:Q", title="µs per request").scale(domain=[0, widest_us], nice=False)
    base = alt.Chart(values(rows)).encode(
        y=alt.Y("row:Q", axis=None).scale(domain=[0, depth], nice=False)
    )
    chart = alt.layer(
        base.mark_rect(stroke=css_variable("card"), strokeWidth=0.5).encode(
            x=x.axis(grid=False),
            x2="end:Q",
            y2="above:Q",
            fill=alt.Fill("change:N", legend=None).scale(
                domain=list(COLOURS), range=list(COLOURS.values())
            ),
            fillOpacity=alt.value(0.35),
            description=TOLD,
        ),
        base.mark_text(align="left", baseline="middle", dx=3, dy=-CALL_PX / 2, fontSize=11).encode(
            x=x, text="label:N"
        ),
    )
    whole = text.significant(sum(it for call, it in spent.items() if len(call) == 1), 3)
    return Panel(
        name=f"flames-{number}",
        alt=f"Flame graph of {variant}: {whole} µs of CPU per request.",
        svg=drawn(chart, height=depth * CALL_PX),
        heading=f"{variant}: {whole} µs per request",
    )


def _row(box: Box, by_name: _Compared, widest_us: float) -> dict[str, object]:
    name, row = box.call[-1], len(box.call) - 1
    here_us, there_us = by_name.here[name], by_name.there.get(name, 0.0)
    us, here, there = (text.significant(it, 3) for it in (box.us, here_us, there_us))
    letters = int((box.us / widest_us * WIDTH_PX - 6) / LETTER_PX)
    label = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
    return {
        "begin": float(f"{box.begin_us:.6g}"),
        "end": float(f"{box.begin_us + box.us:.6g}"),
        "row": row,
        "above": row + 1,
        "change": "alike" if name == NAMELESS else _change(here_us, there_us),
        "label": label,
        "told": f"{name}: {us} µs; all calls of it {here} µs, there {there} µs",
    }


def _change(us: float, other_us: float) -> str:
    if abs(us - other_us) < ALIKE * max(us, other_us):
        return "alike"
    return "more" if us > other_us else "less"
