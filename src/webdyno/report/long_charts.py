"""The chart of what long looks showed."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import altair as alt

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.files import MIB
from webdyno.core.looks import LongLook, LookPart
from webdyno.media.document import Figure, Panel
from webdyno.media.drawing import (
    CROSS,
    GROUPED,
    TOOLTIP,
    Layers,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.around_rounds import how_it_changes, part_words
from webdyno.report.show import PointView

PANEL_PX = 220
MINUTE_S = 60.0
STALL_SIZE = 140


class _Shown(NamedTuple):
    name: str
    heading: str
    axis: str
    of: Callable[[LookPart], Interval | None]
    scale: float = 1.0
    """What the value is divided by."""


PANELS = (
    _Shown("throughput", "Throughput", "Throughput, req/s", lambda part: part.throughput_rps),
    _Shown("p50", "Latency p50", "Latency, ms", lambda part: part.p50_us, 1e3),
    _Shown("p99", "99% of the responses within", "Latency, ms", lambda part: part.p99_us, 1e3),
    _Shown("cpu", "Servers' CPU per request", "µs", lambda part: part.server_cpu_us),
    _Shown(
        name="memory",
        heading="Memory of the servers",
        axis="MiB",
        of=lambda part: part.memory.span() if part.memory else None,
        scale=MIB,
    ),
)


def course_figure(point: PointView) -> Figure | None:
    """Draw what long looks that have several parts showed over time; None where none has."""
    looks = [look for look in point.judgement.looks if look.parts]
    drawn = (_panel(shown, looks, list(point.data.experiment.variants)) for shown in PANELS)
    panels = tuple(filter(None, drawn))
    if not panels:
        return None
    slopes = "".join(f" {line}." for line in how_it_changes(looks))
    return Figure(
        name="course",
        title="Under load for longer",
        caption="After the rounds, each variant under load without restart: a mark for each part "
        "with its 95% CI (of memory the least and the most that was held). A cross: a part with "
        "stalls.",
        note="A dashed line is an interruption, after which the servers were started again."
        + slopes,
        panels=panels,
        by_variant=True,
    )


def course_rows(looks: Sequence[LongLook], of: Callable[[LookPart], Interval | None]) -> Rows:
    """Return a row for each part of each look in which something was measured."""
    return [
        {
            "variant": look.variant,
            "line": f"{look.variant} {part.stretch}",
            "minute": round((part.at_s + part.length_s / 2) / MINUTE_S, 3),
            "low": value.low,
            "value": value.estimate,
            "high": value.high,
            "stalled": bool(part.stalls),
            "told": f"{look.variant}, {text.duration(part.at_s)} to "
            f"{text.duration(part.at_s + part.length_s)}: {part_words(part)}",
        }
        for look in looks
        for part in look.parts
        if (value := of(part)) is not None
    ]


def _panel(shown: _Shown, looks: Sequence[LongLook], variants: Sequence[str]) -> Panel | None:
    rows = course_rows(looks, shown.of)
    if not rows:
        return None
    for row in rows:
        row |= {end: float(f"{row[end] / shown.scale:.4g}") for end in ("low", "value", "high")}
    breaks = [{"minute": pause.at_s / MINUTE_S} for look in looks for pause in look.breaks]
    ranges = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row["value"] for row in rows if row["variant"] == variant]
        ends = f"{text.significant(min(own))} to {text.significant(max(own))}"
        ranges.append(f"{variant}: {ends} ({shown.axis})")
    return panel(
        f"course-{shown.name}",
        f"{shown.heading} over time. {'; '.join(ranges)}.",
        _course_chart(rows, breaks, shown.axis, variants),
        heading=shown.heading,
        height=PANEL_PX,
        is_half=True,
    )


def _course_chart(rows: Rows, breaks: Rows, axis: str, variants: Sequence[str]) -> Layers:
    color, shape, dash = variant_encodings(variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("minute:Q", title="Minutes under load").axis(labelExpr=GROUPED, grid=False),
        y=alt.Y("value:Q", title=axis)
        .scale(zero=False, nice=True, padding=8)
        .axis(labelExpr=GROUPED, tickCount=5),
        color=color,
    )
    return alt.layer(
        alt.Chart(values(breaks))
        .mark_rule(strokeDash=[4, 4], color=css_variable("ink-soft"), aria=False)
        .encode(x="minute:Q"),
        base.mark_rule(strokeWidth=1.5, aria=False).encode(
            y=alt.Y("low:Q", title=axis), y2="high:Q"
        ),
        base.mark_line(strokeWidth=1.5, aria=False).encode(strokeDash=dash, detail="line:N"),
        base.mark_point(filled=True, size=50, opacity=1).encode(shape=shape, description=TOOLTIP),
        base.transform_filter("datum.stalled")
        .mark_point(shape=CROSS, size=STALL_SIZE, strokeWidth=2.5, aria=False)
        .encode(color=alt.value(css_variable("broken"))),
    )
