"""The chart of a search for the capacity: each objective against the rate, and the capacities."""

from collections.abc import Mapping, Sequence

import altair as alt

from webdyno.judge.point_data import PointData
from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.capacity import Objective
from webdyno.model.histogram import Histogram
from webdyno.model.metrics import CAPACITY
from webdyno.model.records import SlotRecord
from webdyno.report.drawing import (
    GROUPED,
    TOLD,
    Figure,
    Layers,
    Panel,
    Rows,
    arm_encodings,
    css_variable,
    drawn,
    values,
)
from webdyno.report.view import PointView

SHOWN_BELOW = 0.4
"""Trials at lower rates, of the lowest capacity, would only squeeze the others."""
SHOWN_ABOVE = 1.6


def capacity_figure(point: PointView) -> Figure | None:
    """What has to hold in each trial, by rate, with each arm's capacity: a panel per objective."""
    objectives = point.data.experiment.objectives
    found = {
        it.arm: it.interval for it in point.judgement.arms if it.metric == CAPACITY and it.interval
    }
    if not objectives or not found:
        return None
    spans = [_span(arm, it) for arm, it in found.items()]
    panels = [
        Panel(
            name=f"capacity-{number}",
            alt=f"{'; '.join(str(it['told']) for it in spans)}.",
            svg=drawn(_chart(list(point.data.experiment.arms), rows, spans, objective)),
            heading=objective.text if len(objectives) > 1 else "",
        )
        for number, objective in enumerate(objectives)
        if (rows := _shown(trial_rows(point.data, number, objective), found))
    ]
    if not panels:
        return None
    return Figure(
        name="capacity",
        title="How much each can take",
        caption="A mark for each trial; those below the dashed line keep "
        f"{' and '.join(it.text for it in objectives)}. The upright lines are the capacities "
        "with their intervals.",
        panels=tuple(panels),
        by_arm=True,
    )


def _span(arm: str, found: Interval) -> dict[str, object]:
    said = (
        f"{arm}: capacity {text.number(found.estimate)} ({text.quantity_bounds(found)}) per second"
    )
    ends = {"low": found.low, "high": found.high, "middle": found.estimate}
    return {"arm": arm, **ends, "told": said}


def _shown(rows: Rows, found: Mapping[str, Interval]) -> Rows:
    lowest = min(it.low for it in found.values()) * SHOWN_BELOW
    highest = max(it.high for it in found.values()) * SHOWN_ABOVE
    return [row for row in rows if lowest <= row["rate"] <= highest]


def _chart(
    arms: Sequence[str], rows: Rows, spans: list[dict[str, object]], objective: Objective
) -> Layers:
    color, shape, _ = arm_encodings(arms)
    capacities = alt.Chart(values(spans)).encode(color=color)
    limit = alt.Chart(values([{"value": _allowed(objective)}]))
    return alt.layer(
        capacities.mark_rect(opacity=0.2, aria=False).encode(
            x=alt.X("low:Q"), x2="high:Q", fill=color
        ),
        capacities.mark_rule(strokeWidth=2).encode(x="middle:Q", description=TOLD),
        limit.mark_rule(strokeDash=[6, 4], color=css_variable("ink-soft")).encode(y="value:Q"),
        alt.Chart(values(rows))
        .mark_point(filled=True, size=40, opacity=0.8)
        .encode(
            x=alt.X("rate:Q", title="Requests due per second")
            .scale(zero=False, nice=True)
            .axis(labelExpr=GROUPED, grid=False),
            y=_upright(objective),
            color=color,
            shape=shape,
            description=TOLD,
        ),
    )


def _upright(objective: Objective) -> alt.Y:
    """Give the axis: times differ by powers, and a share of failures is often nothing."""
    if objective.within_s is None:
        title = "Requests that failed, % (square root)"
        scale = alt.Scale(type="sqrt", nice=False, padding=10)
    else:
        title = f"{objective.name} of response times, ms (log scale)"
        scale = alt.Scale(type="log", nice=False, padding=10)
    axis = alt.Axis(labelExpr=GROUPED, labelOverlap="greedy", tickCount=6)
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _allowed(objective: Objective) -> float:
    """Give what an objective allows, in the unit of its axis."""
    return 100 * objective.allowed if objective.within_s is None else 1e3 * objective.within_s


def trial_rows(data: PointData, number: int, objective: Objective) -> Rows:
    """Give one row per trial: its rate, and what one of the objectives is about."""
    rows = []
    for slot in data.slots:
        value = _value(slot, number, objective)
        if slot.trial and value is not None:
            rate = slot.trial.rate_rps
            of_failures = objective.within_s is None
            said = text.percent(value / 100) if of_failures else f"{text.significant(value)} ms"
            least = "at least " if slot.load.gave_up else ""
            rows.append(
                {
                    "arm": slot.arm,
                    "rate": float(f"{rate:.5g}"),
                    "value": float(f"{value:.4g}"),
                    "told": f"{slot.arm}, block {slot.block}: {text.number(rate)} per second, "
                    f"{objective.name} {least}{said}",
                }
            )
    return rows


def _value(slot: SlotRecord, number: int, objective: Objective) -> float | None:
    """Give the percentile in ms, or the failures in %; None where a trial can't tell."""
    if objective.within_s is not None:
        times = Histogram.decode(slot.load.response_time_us.histogram or "")
        time_us = times.quantile(1 - objective.allowed)
        return time_us / 1e3 if time_us else None
    trial = slot.trial
    beyond = trial.beyond[number] if trial else None
    return 100 * beyond / trial.asked if trial and trial.asked and beyond is not None else None
