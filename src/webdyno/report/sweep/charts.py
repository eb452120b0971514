"""The charts of a sweep: each metric along the first factor, a panel for each other combination."""

from dataclasses import dataclass
from math import exp, log
from typing import Any, Literal

import altair as alt

from webdyno.model.judgement import Metric
from webdyno.model.point import SweepJudgement
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.chart_data import Rows
from webdyno.report.evidence import metric_label, metric_title
from webdyno.report.figure import (
    GROUPED,
    Figure,
    Layers,
    Panel,
    arm_encodings,
    opacity,
    spec,
    values,
)
from webdyno.report.palette import variable
from webdyno.report.sweep.chart_data import Axis, ratio_rows, sweep_axis, value_rows

HEIGHT_PX = 260
ROOM = 1.25
"""How far beyond the outermost estimate an axis goes; wider intervals are cut off there."""
WIDE = 20
"""From this quotient of largest and smallest time on, times are drawn on a logarithmic axis."""
TIMES = "format(datum.value, '.4~g') + '×'"


@dataclass(frozen=True)
class _Upright:
    """The vertical axis that all panels of a figure share."""

    title: str
    kind: Literal["log", "linear"]
    domain: tuple[float, float]
    labels: str = GROUPED

    def encode(self, field: str) -> alt.Y:
        """Give the axis with a field on it."""
        scale = alt.Scale(type=self.kind, domain=list(self.domain), nice=False, clamp=True)
        axis = alt.Axis(labelExpr=self.labels, tickCount=6, labelOverlap="greedy")
        return alt.Y(f"{field}:Q", title=self.title, scale=scale, axis=axis)


def metric_figure(head: RunHead, sweep: SweepJudgement, metric: Metric) -> Figure | None:
    """One metric of all arms at all points."""
    axis = sweep_axis(head)
    rows = value_rows(sweep, axis, metric.name)
    if not rows:
        return None
    estimates = [row["value"] for row in rows]
    wide = metric.unit == "µs" and max(estimates) > WIDE * min(estimates)
    low = min(estimates) / ROOM if wide else 0.0
    upright = _Upright(
        title=metric_title(metric) + (" (log scale)" if wide else ""),
        kind="log" if wide else "linear",
        domain=(low, max(estimates) * ROOM),
    )
    return Figure(
        name=metric.name,
        title=metric_label(metric),
        caption=f"{metric.better.capitalize()} is better. The bands are 95{text.THIN}% intervals.",
        panels=_panels(metric.name, head, rows, axis, upright),
        by_arm=True,
    )


def ratio_figure(head: RunHead, sweep: SweepJudgement, metric: Metric) -> Figure | None:
    """The deciding metric's ratios to the baseline at all points."""
    axis = sweep_axis(head)
    rows = ratio_rows(sweep, axis, metric.name)
    if not rows:
        return None
    delta = max(row["delta"] for row in rows)
    against = rows[0]["against"]
    farthest = max(abs(log(each)) for each in [1 + delta, *(row["value"] for row in rows)])
    below = any(row["value"] < 1 for row in rows)
    above = any(row["value"] > 1 for row in rows)
    reach = exp(farthest) * ROOM
    near = (1 + delta) ** 3
    upright = _Upright(
        title=f"Ratio to {against} (log scale)",
        kind="log",
        domain=(1 / (reach if below else near), reach if above else near),
        labels=TIMES,
    )
    return Figure(
        name="ratios",
        title=f"{metric_label(metric)}: each arm ÷ {against}",
        caption=f"With intervals. The grey band, ±{text.percent(delta)} around 1, holds "
        f"differences too small to matter; {metric.better} is better.",
        panels=_panels("ratios", head, rows, axis, upright, delta),
        by_arm=True,
    )


def _panels(
    name: str,
    head: RunHead,
    rows: Rows,
    axis: Axis,
    upright: _Upright,
    delta: float | None = None,
) -> tuple[Panel, ...]:
    facets = dict.fromkeys(row["facet"] for row in rows)
    panels = []
    for number, heading in enumerate(facets):
        shown = [row for row in rows if row["facet"] == heading]
        said = "; ".join(
            f"{axis.title} {row['level']}, {row['arm']}: {row['told']}" for row in shown
        )
        chart = _chart(head, shown, axis, upright, delta)
        panels.append(
            Panel(
                f"sweep-{name}-{number}",
                f"{upright.title}. {said}",
                spec(chart, HEIGHT_PX),
                heading,
            )
        )
    return tuple(panels)


def _chart(head: RunHead, rows: Rows, axis: Axis, upright: _Upright, delta: float | None) -> Layers:
    color, shape, dash = arm_encodings(head.experiment.arms)
    base = alt.Chart(values(rows)).encode(x=_across(axis), color=color, opacity=opacity())
    told = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("level:N", title=axis.title),
        alt.Tooltip("told:N", title="estimate (interval)"),
        *([alt.Tooltip("verdict:N")] if delta is not None else []),
    ]
    layers: list[Any] = [] if delta is None else _equivalent(upright, delta)
    if axis.scale == "names":
        offset = alt.XOffset("arm:N").scale(domain=list(head.experiment.arms))
        base = base.encode(xOffset=offset)
        layers.append(
            base.mark_rule(strokeWidth=3, strokeCap="round").encode(
                y=upright.encode("low"), y2="high:Q"
            )
        )
    else:
        band = base.mark_area(clip=True, aria=False).encode(
            y=upright.encode("low"), y2="high:Q", opacity=_band_opacity()
        )
        line = base.mark_line(strokeWidth=2.5, aria=False)
        layers += [band, line.encode(y=upright.encode("value"), strokeDash=dash)]
    points = base.mark_point(filled=True, size=75)
    layers.append(points.encode(y=upright.encode("value"), shape=shape, tooltip=told))
    return alt.layer(*layers)


def _across(axis: Axis) -> alt.X:
    if axis.scale == "names":
        names = alt.Axis(labelAngle=0, labelLimit=160)
        return alt.X("level:N", title=axis.title, sort=axis.names, axis=names)
    outermost = [min(axis.numbers), max(axis.numbers)]
    scale = alt.Scale(type=axis.scale, domain=outermost, nice=False, padding=14)
    ticks = alt.Axis(values=axis.numbers, labelExpr=GROUPED, labelOverlap="greedy", grid=False)
    return alt.X("level:Q", title=axis.title, scale=scale, axis=ticks)


def _equivalent(upright: _Upright, delta: float) -> list[Any]:
    """The band of ratios that count as equivalent, and the line of no difference."""
    band = alt.Chart(values([{"low": 1 / (1 + delta), "high": 1 + delta, "one": 1}]))
    return [
        band.mark_rect(color=variable("band")).encode(y=upright.encode("low"), y2="high:Q"),
        band.mark_rule(color=variable("ink-soft")).encode(y=upright.encode("one")),
    ]


def _band_opacity() -> Any:  # noqa: ANN401 (altair's condition types are not public)
    mine = "highlighted == '' || datum.arm == highlighted"
    return alt.when(mine).then(alt.value(0.16)).otherwise(alt.value(0.03))
