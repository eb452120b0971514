"""The chart of response times: one curve of percentiles for each arm."""

from collections.abc import Iterator, Sequence
from math import ceil, log10
from typing import Any

import altair as alt

from webdyno.judge.point_data import PointData
from webdyno.model import format as text
from webdyno.model.histogram import merge_encoded
from webdyno.model.records import SlotRecord
from webdyno.report.drawing import (
    GROUPED,
    TOLD,
    Figure,
    Panel,
    Rows,
    arm_encodings,
    drawn,
    values,
)
from webdyno.report.view import PointView

TAIL_SAMPLES = 10
"""A percentile is drawn when at least so many answers lie beyond it."""
POINTS_PER_DECADE = 20
NAMED = (0.5, 0.1, 0.01, 0.001, 0.0001)
"""Shares beyond a percentile that get a mark on the curve."""
PERCENTILE = "'p' + format(100 * (1 - datum.value), '.8~g')"


def latency_figure(point: PointView) -> Figure | None:
    """Percentile curves of the response times, all slots of an arm merged; not of a search."""
    if point.data.experiment.objectives:
        return None
    arms = list(point.data.experiment.arms)
    rows = latency_rows(point.data, arms)
    if not rows:
        return None
    deepest = min(row["beyond"] for row in rows)
    ticks = [0.5, *(10.0**-n for n in range(1, 9) if 10.0**-n >= deepest * 0.9)]
    color, shape, dash = arm_encodings(arms)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("beyond:Q", title="Percentile of requests (log scale towards the slowest)")
        .scale(type="log", nice=False, domain=[1, deepest])
        .axis(values=ticks, labelExpr=PERCENTILE, labelFlush=True),
        y=alt.Y("ms:Q", title="Response time, ms (log scale)")
        .scale(type="log", nice=False, padding=10)
        .axis(values=_round_steps(rows), labelExpr=GROUPED, labelOverlap="greedy"),
        color=color,
    )
    named = base.transform_filter("isValid(datum.told)").mark_point(filled=True, size=60, opacity=1)
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5, aria=False).encode(strokeDash=dash),
        named.encode(shape=shape, description=TOLD),
    )
    medians = [row["told"] for row in rows if row["beyond"] == 0.5]
    closed = point.data.experiment.load.loop == "closed"
    return Figure(
        name="latency",
        title="How long answers take",
        caption="Lower is better. All slots merged; a curve ends where fewer than ten answers are "
        "left beyond it."
        + (
            " Closed loop: while a server stalls its clients wait as well, so these times say "
            "how the arms compare, not what independent visitors would see."
            if closed
            else ""
        ),
        panels=(
            Panel(
                name="latency",
                alt=f"Response time by percentile for each arm. {'; '.join(medians)}.",
                svg=drawn(chart),
            ),
        ),
        by_arm=True,
    )


def latency_rows(data: PointData, arms: Sequence[str]) -> Rows:
    """Give each arm's response time at percentiles evenly spaced on the scale 1/(1 − p).

    All measured slots of finished blocks are merged; the curve ends where fewer than ten answers
    are left beyond it.
    """
    slots = data.slots
    return [row for arm in arms for row in _curve(arm, [slot for slot in slots if slot.arm == arm])]


def _curve(arm: str, slots: list[SlotRecord]) -> Iterator[dict[str, Any]]:
    merged = merge_encoded(slot.load.response_time_us.histogram for slot in slots)
    for beyond in _percentile_grid(merged.total):
        time_us = merged.quantile(1 - beyond)
        if not time_us:
            continue
        ms = float(f"{time_us / 1000:.4g}")
        row = {"arm": arm, "beyond": float(f"{beyond:.4g}"), "ms": ms}
        if row["beyond"] in NAMED:
            row["told"] = f"{arm}, {percentile_name(beyond)}: {text.significant(ms)} ms"
        yield row


def _percentile_grid(answers: int) -> list[float]:
    """Give shares of answers that lie beyond a percentile, the same for all arms where they can."""
    grid = [10 ** (-step / POINTS_PER_DECADE) for step in range(9 * POINTS_PER_DECADE)]
    return sorted(
        (share for share in [*grid, 0.5] if share * answers >= TAIL_SAMPLES), reverse=True
    )


def percentile_name(beyond: float) -> str:
    """Name a percentile with the digits that tell it from 100."""
    return f"p{100 * (1 - beyond):.{max(0, ceil(-log10(beyond) - 1e-9) - 2)}f}"


def _round_steps(rows: Rows) -> list[float]:
    """Give 1, 2 and 5 times each power of ten in the range of the curves."""
    times = [row["ms"] for row in rows]
    steps = (step * 10.0**power for power in range(-4, 6) for step in (1, 2, 5))
    return [step for step in steps if min(times) / 2 <= step <= max(times) * 2]
