"""The charts of a search for the capacity: its trials, and what came of asking for more."""

from collections.abc import Sequence

import altair as alt

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.capacity import Objective
from webdyno.core.explain import Overload
from webdyno.core.histogram import Histogram
from webdyno.core.metrics import CAPACITY
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

SHOWN_BELOW = 0.4
"""Trials at lower rates, of the lowest capacity, would only squeeze the others."""
SHOWN_ABOVE = 1.6


def capacity_figure(point: PointView) -> Figure | None:
    """What has to hold in each trial, by rate, with the capacities: a panel for each objective."""
    objectives = point.data.objectives
    capacities = {
        variant.variant: variant.interval
        for variant in point.judgement.variants
        if variant.metric == CAPACITY and variant.interval
    }
    if not objectives or not capacities:
        return None
    spans = [_span(variant, value) for variant, value in capacities.items()]
    lowest = min(interval.low for interval in capacities.values()) * SHOWN_BELOW
    highest = max(interval.high for interval in capacities.values()) * SHOWN_ABOVE
    about, several = f"{'; '.join(str(span['told']) for span in spans)}.", len(objectives) > 1
    panels = []
    for number, objective in enumerate(objectives):
        trials = trial_rows(point.data, number, objective)
        rows = [row for row in trials if lowest <= row["rate"] <= highest]
        if rows:
            chart = _capacity_chart(point.variants, rows, spans, objective)
            heading = objective.text if several else ""
            panels.append(
                panel(f"capacity-{number}", about, chart, heading=heading, is_half=several)
            )
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
    bounds = text.quantity_bounds(capacity)
    return {
        "variant": variant,
        "low": capacity.low,
        "high": capacity.high,
        "middle": capacity.estimate,
        "told": f"{variant}: capacity {text.number(capacity.estimate)} ({bounds}) per second",
    }


def _capacity_chart(
    variants: Sequence[str], rows: Rows, spans: list[dict[str, object]], objective: Objective
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
        .axis(labelExpr=GROUPED, grid=False),
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
