"""The charts of a search for the capacity: its trials, and what came of asking for more."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from webdyno.core import format as text
from webdyno.core.findings import Overload
from webdyno.core.histogram import Histogram
from webdyno.core.judgement import VariantValue
from webdyno.core.metrics import CAPACITY
from webdyno.core.objectives import Objective
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Figure
from webdyno.media.drawing import (
    GROUPED,
    TOOLTIP,
    Layers,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.show import PointView
from webdyno.report.words import value_and_interval

SHOWN_BELOW = 0.4
"""Trials at lower rates, of the lowest capacity, would only squeeze the others."""
SHOWN_ABOVE = 1.6


def capacity_figure(point: PointView) -> Figure | None:
    """What has to hold in each trial, by rate, with the capacities: a panel for each objective."""
    objectives = point.data.objectives
    capacities = {
        variant.variant: variant
        for variant in point.judgement.variants
        if variant.metric == CAPACITY and variant.interval
    }
    if not objectives or not capacities:
        return None
    spans = [_span(value) for value in capacities.values()]
    lowest = min(span["low"] for span in spans) * SHOWN_BELOW
    highest = max(span["high"] for span in spans) * SHOWN_ABOVE
    about, several = f"{'; '.join(str(span['told']) for span in spans)}.", len(objectives) > 1
    panels, not_drawn = [], 0
    for number, objective in enumerate(objectives):
        trials = trial_rows(point.data, number, objective)
        rows = [row for row in trials if lowest <= row["rate"] <= highest]
        not_drawn = max(not_drawn, len(trials) - len(rows))
        if rows:
            chart = _capacity_chart(point.variants, rows, spans, objective)
            heading = objective.text if several else ""
            panels.append(
                panel(
                    f"capacity-{number}",
                    about,
                    chart,
                    heading=heading,
                    is_half=several,
                )
            )
    if not panels:
        return None
    beyond = f" {text.count(not_drawn, 'trial')} at rates far from these not drawn."
    return Figure(
        name="capacity",
        title="Trials by arrival rate",
        caption="A mark for each trial; those below the dashed line keep "
        f"{' and '.join(objective.text for objective in objectives)}. Upright lines: the "
        f"capacities with their 95% CIs.{beyond if not_drawn else ''}",
        panels=tuple(panels),
        by_variant=True,
    )


def _span(capacity: VariantValue) -> dict[str, Any]:
    assert capacity.interval is not None  # noqa: S101 (only these are drawn)
    shown, around = value_and_interval(capacity)
    ends = f" ({around})" if around else ""
    return {
        "variant": capacity.variant,
        "low": capacity.interval.low,
        "high": capacity.interval.high,
        "middle": capacity.interval.estimate,
        "told": f"{capacity.variant}: capacity {shown}{ends} per second",
    }


def _capacity_chart(
    variants: Sequence[str], rows: Rows, spans: Rows, objective: Objective
) -> Layers:
    color, shape, _ = variant_encodings(variants)
    capacities = alt.Chart(values(spans)).encode(color=color)
    # Times differ by powers, and a share of failures is often nothing.
    if objective.within_s is None:
        allowed, title = 100 * objective.allowed, "Requests that failed, % (square root)"
        scale = alt.Scale(type="sqrt", nice=False, padding=10)
    else:
        allowed, title = 1e3 * objective.within_s, f"{objective.name} of latency, ms (log scale)"
        scale = alt.Scale(type="log", nice=False, padding=10)
    axis = alt.Axis(labelExpr=GROUPED, labelOverlap="greedy", tickCount=6)
    limit = alt.Chart(values([{"value": allowed}]))
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
            y=alt.Y("value:Q", title=title, scale=scale, axis=axis),
            color=color,
            shape=shape,
            description=TOOLTIP,
        ),
    )


def trial_rows(data: PointData, number: int, objective: Objective) -> Rows:
    """Return one row per trial of the search: its rate, and what one of the objectives is about."""
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
    """Return the percentile in ms, or the failures in %; None where a trial can't say."""
    if objective.within_s is not None:
        times = Histogram.decode(slot.load.latency_us.histogram or "")
        time_us = times.quantile(1 - objective.allowed)
        return time_us / 1e3 if time_us else None
    trial = slot.trial
    beyond = trial.beyond[number] if trial else None
    return 100 * beyond / trial.asked if trial and trial.asked and beyond is not None else None


def overload_figure(point: PointView) -> Figure | None:
    """Goodput by offered load, both in capacities."""
    rows = overload_rows(point.judgement.overloads)
    if not rows:
        return None
    color, shape, dash = variant_encodings(point.variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("offered:Q", title="Offered load, % of the capacity")
        .scale(zero=False, nice=True)
        .axis(labelExpr=GROUPED, grid=False, values=sorted({row["offered"] for row in rows})),
        y=alt.Y("goodput:Q", title="Goodput, % of the capacity").axis(labelExpr=GROUPED),
        color=color,
    )
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5, aria=False).encode(strokeDash=dash),
        base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape, description=TOOLTIP),
    )
    said = "; ".join(str(row["told"]) for row in rows if row["offered"] > 100)
    return Figure(
        name="overload",
        title="Goodput beyond capacity",
        caption="Requests per second within the objectives. A server that holds 100% sheds what is "
        "too much.",
        panels=(panel("overload", f"Goodput beyond capacity. {said}.", chart),),
        by_variant=True,
    )


def overload_rows(overloads: Sequence[Overload]) -> Rows:
    """Return a row for each variant and multiple, and one for its capacity."""
    rows = [
        {"variant": variant, "offered": 100.0, "goodput": 100.0, "told": f"{variant}: its capacity"}
        for variant in dict.fromkeys(each.variant for each in overloads)
    ]
    return rows + [
        {
            "variant": each.variant,
            "offered": 100 * each.times,
            "goodput": 100 * each.of_capacity.median,
            "told": f"{each.variant} at {each.times:g}{text.TIMES}: "
            f"{text.percent(each.of_capacity.median)} of its capacity",
        }
        for each in overloads
        if each.of_capacity
    ]
