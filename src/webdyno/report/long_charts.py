"""The chart of what long looks showed: its quantities above each other, along one time axis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

import altair as alt

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.files import MIB
from webdyno.core.looks import LongLook, LookPart
from webdyno.core.records import LongLookRecord, Record
from webdyno.evidence.look_records import length_s, with_begins
from webdyno.media.document import Figure
from webdyno.media.drawing import (
    CROSS,
    GROUPED,
    TOOLTIP,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.around_rounds import how_it_changes, part_words
from webdyno.report.show import PointView

ROW_PX, ROWS_APART_PX = 92, 14
UNITS = {"Seconds": 1.0, "Minutes": 60.0, "Hours": 3_600.0}
FEWEST_UNITS = 3
"""Of the unit of time that is longest."""
STALL_SIZE = 110
LABELS_PX = 48
"""Width of the labels of all upright axes: so all rows begin at the same place."""


class _Shown(NamedTuple):
    heading: str
    unit: str
    of: Callable[[LookPart], Interval | None]
    scale: float = 1.0
    """What the value is divided by."""


ABOVE_FAILURES = (
    _Shown("Throughput", "req/s", lambda part: part.throughput_rps),
    _Shown("Latency p99", "ms", lambda part: part.p99_us, 1e3),
)
BELOW_FAILURES = (
    _Shown("CPU per request", "µs", lambda part: part.server_cpu_us),
    _Shown("Memory", "MiB", lambda part: part.memory.span() if part.memory else None, MIB),
)


def course_figure(point: PointView) -> Figure | None:
    """Draw what long looks that have several parts showed over time; None where none has."""
    looks = [look for look in point.judgement.looks if look.parts]
    if not looks:
        return None
    failed = failure_rows(point.data.records)
    any_failed = any(row["value"] for row in failed)
    quantities = [
        *((f"{shown.heading}, {shown.unit}", _scaled(looks, shown)) for shown in ABOVE_FAILURES),
        *([("Failed requests a second", failed)] if any_failed else []),
        *((f"{shown.heading}, {shown.unit}", _scaled(looks, shown)) for shown in BELOW_FAILURES),
    ]
    quantities = [(heading, rows) for heading, rows in quantities if rows]
    breaks: Rows = [{"at_s": pause.at_s} for look in looks for pause in look.breaks]
    unit, lasts_s = _unit_of_time(looks)
    for row in chain(breaks, *(rows for _, rows in quantities)):
        row["time"] = round(row["at_s"] / lasts_s, 4)
    titles = [*("" for _ in quantities[1:]), f"{unit} under load"]
    charts = [
        _row(heading, rows, breaks, point.variants, title)
        for (heading, rows), title in zip(quantities, titles, strict=True)
    ]
    chart = alt.vconcat(*charts, spacing=ROWS_APART_PX).resolve_scale(x="shared")
    about = " ".join(f"{heading}: {'; '.join(_ranges(rows))}." for heading, rows in quantities)
    stalled = (
        " A cross: a part with stalls."
        if any(part.stalls for look in looks for part in look.parts)
        else ""
    )
    paused = " A dashed line: an interruption; the servers were started again." if breaks else ""
    return Figure(
        name="course",
        title="Under load for longer",
        caption="After the rounds, each variant under load without restart: a mark for each part "
        "with its 95% CI (of memory the least and the most that was held)."
        f"{stalled}{paused}{'' if any_failed else ' No request failed.'}",
        note=" ".join(f"{line}." for line in how_it_changes(looks)),
        panels=(panel("course", f"Over time. {about}", chart, height=ROW_PX),),
        by_variant=True,
    )


def course_rows(looks: Sequence[LongLook], of: Callable[[LookPart], Interval | None]) -> Rows:
    """Return a row for each part of each look in which something was measured."""
    return [
        {
            "variant": look.variant,
            "line": f"{look.variant} {part.stretch}",
            "at_s": round(part.at_s + part.length_s / 2, 2),
            "low": value.low,
            "value": value.estimate,
            "high": value.high,
            "stalled": bool(part.stalls),
            "told": f"{look.variant}, {_from_to(part.at_s, part.length_s)}: {part_words(part)}",
        }
        for look in looks
        for part in look.parts
        if (value := of(part)) is not None
    ]


def failure_rows(records: Iterable[Record]) -> Rows:
    """Return a row for each part of each look: how many requests failed in a second of it."""
    looks = sorted(
        (record for record in records if isinstance(record, LongLookRecord)),
        key=lambda record: record.variant,
    )
    rows = []
    for variant, parts in groupby(looks, key=lambda record: record.variant):
        for begin_s, part in with_begins(list(parts)):
            if not (lasted_s := length_s(part)):
                continue
            failed = part.load.failures.total
            rate = float(f"{failed / lasted_s:.4g}")
            rows.append(
                {
                    "variant": variant,
                    "line": f"{variant} {part.stretch}",
                    "at_s": round(begin_s + lasted_s / 2, 2),
                    "low": rate,
                    "value": rate,
                    "high": rate,
                    "stalled": False,
                    "told": f"{variant}, {_from_to(begin_s, lasted_s)}: "
                    f"{text.count(failed, 'request')} failed",
                }
            )
    return rows


def _unit_of_time(looks: Sequence[LongLook]) -> tuple[str, float]:
    looked_s = max(part.at_s + part.length_s for look in looks for part in look.parts)
    shortest, *longer = UNITS.items()
    fitting = [unit for unit in longer if looked_s >= FEWEST_UNITS * unit[1]]
    return fitting[-1] if fitting else shortest


def _from_to(begin_s: float, lasted_s: float) -> str:
    return f"{text.duration(begin_s)} to {text.duration(begin_s + lasted_s)}"


def _scaled(looks: Sequence[LongLook], shown: _Shown) -> Rows:
    ends = ("low", "value", "high")
    return [
        row | {end: float(f"{row[end] / shown.scale:.4g}") for end in ends}
        for row in course_rows(looks, shown.of)
    ]


def _ranges(rows: Rows) -> Iterator[str]:
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row["value"] for row in rows if row["variant"] == variant]
        low, high = (text.significant(end) if end else "0" for end in (min(own), max(own)))
        yield f"{variant} {low} to {high}"


def _row(
    heading: str, rows: Rows, breaks: Rows, variants: Sequence[str], title: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw a quantity; with a title of the time's axis where that is to be seen below it."""
    color, shape, dash = variant_encodings(variants)
    seen = bool(title)
    time = alt.Axis(grid=False, labels=seen, ticks=seen, tickCount=8, labelExpr=GROUPED)
    upright = alt.Axis(
        labelExpr=GROUPED, tickCount=3, minExtent=LABELS_PX, maxExtent=LABELS_PX, title=None
    )
    across = alt.X("time:Q", title=title or None, axis=time).scale(zero=True, nice=False)
    base = alt.Chart(values(rows)).encode(
        x=across, y=alt.Y("value:Q", axis=upright).scale(zero=True, nice=True), color=color
    )
    return alt.layer(
        alt.Chart(values(breaks))
        .mark_rule(strokeDash=[4, 4], color=css_variable("ink-soft"), aria=False)
        .encode(x=across),
        base.mark_rule(strokeWidth=1.5, aria=False).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(strokeWidth=1.5, aria=False).encode(strokeDash=dash, detail="line:N"),
        base.mark_point(filled=True, size=40, opacity=1).encode(shape=shape, description=TOOLTIP),
        base.transform_filter("datum.stalled")
        .mark_point(shape=CROSS, size=STALL_SIZE, strokeWidth=2.5, aria=False)
        .encode(color=alt.value(css_variable("broken"))),
        title=alt.TitleParams(heading, anchor="start", fontSize=12, offset=6),
    )
