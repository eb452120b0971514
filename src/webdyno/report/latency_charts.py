"""The chart of latency by percentile."""

from collections.abc import Iterator, Sequence
from math import ceil, log10
from typing import Any

import altair as alt

from webdyno.core import format as text
from webdyno.core.histogram import Histogram
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Figure
from webdyno.media.drawing import GROUPED, TOOLTIP, Rows, panel, values, variant_encodings
from webdyno.report.percentiles import FEWEST_BEYOND, merged_latency
from webdyno.report.show import PointView

POINTS_PER_DECADE = 20
NAMED = (0.5, 0.1, 0.01, 0.001, 0.0001)
"""Shares beyond a percentile that get a mark on the curve."""
SHORT_RANGE = 20
"""Times of the shortest latency up to which an axis has more steps."""
PERCENTILE = "'p' + format(100 * (1 - datum.value), '.8~g')"


def latency_figure(point: PointView) -> Figure | None:
    """Percentile curves of the latency, all slots of a variant merged; not of a search."""
    if not point.has_one_load:
        return None
    variants = list(point.data.experiment.variants)
    rows = latency_rows(point.data, variants)
    if not rows:
        return None
    deepest = min(row["beyond"] for row in rows)
    ticks = [0.5, *(10.0**-n for n in range(1, 9) if 10.0**-n >= deepest * 0.9)]
    color, shape, dash = variant_encodings(variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("beyond:Q", title="Percentile of requests (log scale)")
        .scale(type="log", nice=False, domain=[rows[0]["beyond"], deepest])
        .axis(values=ticks, labelExpr=PERCENTILE, labelFlush=True),
        y=alt.Y("ms:Q", title="Latency, ms (log scale)")
        .scale(type="log", nice=False, padding=10)
        .axis(values=_round_steps(rows), labelExpr=GROUPED, labelOverlap="greedy"),
        color=color,
    )
    named = base.transform_filter("isValid(datum.told)").mark_point(filled=True, size=60, opacity=1)
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5, aria=False).encode(strokeDash=dash),
        named.encode(shape=shape, description=TOOLTIP),
    )
    medians = [row["told"] for row in rows if row["beyond"] == 0.5]
    closed = point.data.experiment.load.loop == "closed"
    return Figure(
        name="latency",
        title="Latency by percentile",
        caption="All slots merged; lower is better.",
        note="A curve ends where fewer than ten responses are left beyond it."
        + (
            " Closed loop: while a server stalls its clients wait as well, so these times say "
            "how the variants compare, not what independent visitors would see."
            if closed
            else ""
        ),
        panels=(
            panel(
                "latency", f"Latency by percentile for each variant. {'; '.join(medians)}.", chart
            ),
        ),
        by_variant=True,
    )


def latency_rows(data: PointData, variants: Sequence[str]) -> Rows:
    """Give each variant's latency at percentiles evenly spaced on the scale 1/(1 − p).

    All measured slots of finished rounds are merged; the curve ends where fewer than ten responses
    are left beyond it.
    """
    return [row for variant in variants for row in _curve(variant, merged_latency(data, variant))]


def _curve(variant: str, merged: Histogram) -> Iterator[dict[str, Any]]:
    for beyond in _percentile_grid(merged.total):
        time_us = merged.quantile(1 - beyond)
        if not time_us:
            continue
        ms = float(f"{time_us / 1000:.4g}")
        row = {"variant": variant, "beyond": float(f"{beyond:.4g}"), "ms": ms}
        if row["beyond"] in NAMED:
            row["told"] = f"{variant}, {percentile_name(beyond)}: {text.significant(ms)} ms"
        yield row


def _percentile_grid(responses: int) -> list[float]:
    """Give shares of responses beyond a percentile, the same for all variants where they can."""
    grid = [10 ** (-step / POINTS_PER_DECADE) for step in range(1, 9 * POINTS_PER_DECADE)]
    return sorted(
        (share for share in [*grid, 0.5] if share * responses >= FEWEST_BEYOND), reverse=True
    )


def percentile_name(beyond: float) -> str:
    """Name a percentile with the digits that report it from 100."""
    return f"p{100 * (1 - beyond):.{max(0, ceil(-log10(beyond) - 1e-9) - 2)}f}"


def _round_steps(rows: Rows) -> list[float]:
    """Give 1, 2 and 5 times each power of ten in the range of the curves; more in a short range."""
    times = [row["ms"] for row in rows]
    steps = (1, 2, 5) if max(times) > SHORT_RANGE * min(times) else (1, 1.5, 2, 3, 4, 5, 6, 8)
    each = (step * 10.0**power for power in range(-4, 6) for step in steps)
    return [step for step in each if min(times) / 2 <= step <= max(times) * 2]
