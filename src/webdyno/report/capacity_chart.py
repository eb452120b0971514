"""The chart of a search for the capacity: response time against rate, objective and capacity."""

from collections.abc import Sequence

import altair as alt

from webdyno.judge.measured import Measured
from webdyno.model import format as text
from webdyno.model.capacity import Objective
from webdyno.model.histogram import Histogram
from webdyno.model.metrics import CAPACITY
from webdyno.model.records import Record, SlotRecord
from webdyno.report.drawing import (
    GROUPED,
    TOLD,
    Figure,
    Panel,
    Rows,
    arm_encodings,
    drawn,
    values,
    variable,
)
from webdyno.report.view import PointView

SHOWN_BELOW = 0.4
"""Trials at lower rates, of the lowest capacity, would only squeeze the others."""
SHOWN_ABOVE = 1.6


def capacity_figure(point: PointView) -> Figure | None:
    """The percentile that has to hold in each trial, by rate, with each arm's capacity."""
    asked = point.head.experiment.capacity
    held = [it for it in asked.objectives if it.within_s is not None] if asked else []
    found = {
        it.arm: it.interval for it in point.judgement.arms if it.metric == CAPACITY and it.interval
    }
    if not held or not found:
        return None
    lowest = min(it.low for it in found.values()) * SHOWN_BELOW
    highest = max(it.high for it in found.values()) * SHOWN_ABOVE
    objective = held[0]
    rows = [row for row in trial_rows(point.records, objective) if lowest <= row["rate"] <= highest]
    if not rows:
        return None
    color, shape, _ = arm_encodings(point.head.experiment.arms)
    spans = [
        {
            "arm": arm,
            "low": it.low,
            "high": it.high,
            "middle": it.estimate,
            "told": f"{arm}: capacity {text.number(it.estimate)} ({text.bounds(it)}) per second",
        }
        for arm, it in found.items()
    ]
    capacities = alt.Chart(values(spans)).encode(color=color)
    limit = alt.Chart(values([{"ms": 1e3 * (objective.within_s or 0.0)}]))
    chart = alt.layer(
        capacities.mark_rect(opacity=0.2, aria=False).encode(
            x=alt.X("low:Q"), x2="high:Q", fill=color
        ),
        capacities.mark_rule(strokeWidth=2).encode(x="middle:Q", description=TOLD),
        limit.mark_rule(strokeDash=[6, 4], color=variable("ink-soft")).encode(y="ms:Q"),
        alt.Chart(values(rows))
        .mark_point(filled=True, size=40, opacity=0.8)
        .encode(
            x=alt.X("rate:Q", title="Requests due per second")
            .scale(zero=False, nice=True)
            .axis(labelExpr=GROUPED, grid=False),
            y=alt.Y("ms:Q", title=f"{objective.name} of response times, ms (log scale)")
            .scale(type="log", nice=False, padding=10)
            .axis(labelExpr=GROUPED, labelOverlap="greedy", tickCount=6),
            color=color,
            shape=shape,
            description=TOLD,
        ),
    )
    said = [str(row["told"]) for row in spans]
    return Figure(
        name="capacity",
        title="How much each can take",
        caption=f"A mark for each trial; those below the dashed line keep {objective.text}. The "
        "upright lines are the capacities with their intervals.",
        panels=(Panel(name="capacity", alt=f"{'; '.join(said)}.", svg=drawn(chart)),),
        by_arm=True,
    )


def trial_rows(records: Sequence[Record], objective: Objective) -> Rows:
    """Give one row per trial: its rate, and the percentile that the objective is about."""
    rows = []
    for slot in _trials(records):
        times = Histogram.decode(slot.load.response_time_us.histogram or "")
        time_us = times.quantile(1 - objective.allowed)
        if slot.trial and time_us:
            rate = slot.trial.rate_rps
            rows.append(
                {
                    "arm": slot.arm,
                    "rate": float(f"{rate:.5g}"),
                    "ms": float(f"{time_us / 1e3:.4g}"),
                    "told": f"{slot.arm}, block {slot.block}: {text.number(rate)} per second, "
                    f"{objective.name} {text.significant(time_us / 1e3)} ms",
                }
            )
    return rows


def _trials(records: Sequence[Record]) -> list[SlotRecord]:
    return [slot for slot in Measured.of(records).slots if slot.trial is not None]
