"""Charts of latency: by percentile, and by the rates of a search for the capacity."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, log10
from typing import Any

import altair as alt

from webdyno.judge.point_data import PointData
from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.capacity import Objective
from webdyno.model.histogram import Histogram
from webdyno.model.metrics import CAPACITY
from webdyno.model.records import SlotRecord
from webdyno.report.document import Figure
from webdyno.report.drawing import (
    GROUPED,
    TOOLTIP,
    Layers,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.percentiles import FEWEST_BEYOND, merged_latency
from webdyno.report.view import PointView

POINTS_PER_DECADE = 20
NAMED = (0.5, 0.1, 0.01, 0.001, 0.0001)
"""Shares beyond a percentile that get a mark on the curve."""
SHOWN_BELOW = 0.4
"""Trials at lower rates, of the lowest capacity, would only squeeze the others."""
SHOWN_ABOVE = 1.6
SHORT_RANGE = 20
"""Times of the shortest latency up to which an axis has more steps."""
PERCENTILE = "'p' + format(100 * (1 - datum.value), '.8~g')"


def latency_figure(point: PointView) -> Figure | None:
    """Percentile curves of the latency, all slots of a variant merged; not of a search."""
    if point.data.objectives:
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
    """Name a percentile with the digits that tell it from 100."""
    return f"p{100 * (1 - beyond):.{max(0, ceil(-log10(beyond) - 1e-9) - 2)}f}"


def _round_steps(rows: Rows) -> list[float]:
    """Give 1, 2 and 5 times each power of ten in the range of the curves; more in a short range."""
    times = [row["ms"] for row in rows]
    steps = (1, 2, 5) if max(times) > SHORT_RANGE * min(times) else (1, 1.5, 2, 3, 4, 5, 6, 8)
    each = (step * 10.0**power for power in range(-4, 6) for step in steps)
    return [step for step in each if min(times) / 2 <= step <= max(times) * 2]


def capacity_figure(point: PointView) -> Figure | None:
    """What has to hold in each trial, by rate, with each variant's capacity.

    A panel per objective.
    """
    objectives = point.data.objectives
    capacities = {
        variant.variant: variant.interval
        for variant in point.judgement.variants
        if variant.metric == CAPACITY and variant.interval
    }
    if not objectives or not capacities:
        return None
    spans = [_span(variant, value) for variant, value in capacities.items()]
    panels = [
        panel(
            f"capacity-{number}",
            f"{'; '.join(str(span['told']) for span in spans)}.",
            _capacity_chart(list(point.data.experiment.variants), rows, spans, objective),
            heading=objective.text if len(objectives) > 1 else "",
            is_half=len(objectives) > 1,
        )
        for number, objective in enumerate(objectives)
        if (rows := _near_capacities(trial_rows(point.data, number, objective), capacities))
    ]
    if not panels:
        return None
    return Figure(
        name="capacity",
        title="Trials by arrival rate",
        caption="A mark for each trial; those below the dashed line keep "
        f"{' and '.join(objective.text for objective in objectives)}. Upright lines: the "
        "capacities with their 95% CIs.",
        panels=tuple(panels),
        by_variant=True,
    )


def _span(variant: str, capacity: Interval) -> dict[str, object]:
    said = (
        f"{variant}: capacity {text.number(capacity.estimate)} "
        f"({text.quantity_bounds(capacity)}) per second"
    )
    ends = {"low": capacity.low, "high": capacity.high, "middle": capacity.estimate}
    return {"variant": variant, **ends, "told": said}


def _near_capacities(rows: Rows, capacities: Mapping[str, Interval]) -> Rows:
    lowest = min(interval.low for interval in capacities.values()) * SHOWN_BELOW
    highest = max(interval.high for interval in capacities.values()) * SHOWN_ABOVE
    return [row for row in rows if lowest <= row["rate"] <= highest]


def _capacity_chart(
    variants: Sequence[str], rows: Rows, spans: list[dict[str, object]], objective: Objective
) -> Layers:
    color, shape, _ = variant_encodings(variants)
    capacities = alt.Chart(values(spans)).encode(color=color)
    limit = alt.Chart(values([{"value": _allowed(objective)}]))
    return alt.layer(
        capacities.mark_rect(opacity=0.2, aria=False).encode(
            x=alt.X("low:Q"), x2="high:Q", fill=color
        ),
        capacities.mark_rule(strokeWidth=2).encode(x="middle:Q", description=TOOLTIP),
        limit.mark_rule(strokeDash=[6, 4], color=css_variable("ink-soft")).encode(y="value:Q"),
        alt.Chart(values(rows))
        .mark_point(filled=True, size=40, opacity=0.8)
        .encode(
            x=alt.X("rate:Q", title="Arrival rate, req/s")
            .scale(zero=False, nice=True)
            .axis(labelExpr=GROUPED, grid=False),
            y=_axis_of(objective),
            color=color,
            shape=shape,
            description=TOOLTIP,
        ),
    )


def _axis_of(objective: Objective) -> alt.Y:
    """Give the axis: times differ by powers, and a share of failures is often nothing."""
    if objective.within_s is None:
        title = "Requests that failed, % (square root)"
        scale = alt.Scale(type="sqrt", nice=False, padding=10)
    else:
        title = f"{objective.name} of latency, ms (log scale)"
        scale = alt.Scale(type="log", nice=False, padding=10)
    axis = alt.Axis(labelExpr=GROUPED, labelOverlap="greedy", tickCount=6)
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _allowed(objective: Objective) -> float:
    """Give what an objective allows, in the unit of its axis."""
    return 100 * objective.allowed if objective.within_s is None else 1e3 * objective.within_s


def trial_rows(data: PointData, number: int, objective: Objective) -> Rows:
    """Give one row per trial of the search: its rate, and what one of the objectives is about."""
    rows = []
    for slot in data.slots:
        value = _value_of_trial(slot, number, objective)
        if slot.trial and not slot.trial.times and value is not None:
            rate = slot.trial.rate_rps
            of_failures = objective.within_s is None
            said = text.percent(value / 100) if of_failures else f"{text.significant(value)} ms"
            least = "at least " if slot.load.gave_up else ""
            rows.append(
                {
                    "variant": slot.variant,
                    "rate": float(f"{rate:.5g}"),
                    "value": float(f"{value:.4g}"),
                    "told": f"{slot.variant}, round {slot.round}: {text.number(rate)} per second, "
                    f"{objective.name} {least}{said}",
                }
            )
    return rows


def _value_of_trial(slot: SlotRecord, number: int, objective: Objective) -> float | None:
    """Give the percentile in ms, or the failures in %; None where a trial can't tell."""
    if objective.within_s is not None:
        times = Histogram.decode(slot.load.latency_us.histogram or "")
        time_us = times.quantile(1 - objective.allowed)
        return time_us / 1e3 if time_us else None
    trial = slot.trial
    beyond = trial.beyond[number] if trial else None
    return 100 * beyond / trial.asked if trial and trial.asked and beyond is not None else None
