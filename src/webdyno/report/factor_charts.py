"""The charts of a sweep: ratios and metrics along the first factor, a panel per level of others."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from statistics import fmean, pstdev
from typing import Any, Literal

import altair as alt

from webdyno.core import format as text
from webdyno.core.experiment import Experiment, Level
from webdyno.core.judgement import Metric
from webdyno.media.document import Figure, Panel
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
from webdyno.report.ratio_charts import FACTOR, band_words, ratio_axis, ratio_row
from webdyno.report.show import PointView, RunView
from webdyno.report.tables import confidence_words
from webdyno.report.words import (
    metric_axis,
    metric_label,
    sure_bounds,
    sure_ratio,
    value_and_interval,
)

PANEL_PX = 260
BAND_OPACITY = 0.16
FEWEST_FOR_LOG = 4.0
"""How many times the smallest level the largest one is, at least, on a logarithmic axis."""
ROOM = 1.25
"""How far beyond the outermost estimate an axis goes; wider intervals are cut off there."""
UP, DOWN = "M0,0L1,2.2H-1Z", "M0,0L1,-2.2H-1Z"
"""Arrowheads with their tips at an axis's end; the interval continues there."""
WIDE = 20
"""From this quotient of largest and smallest time on, times are drawn on a logarithmic axis."""


def factor_figures(view: RunView) -> list[Figure]:
    """Return the ratios on the deciding metric, then each metric, the deciding one first."""
    if not view.deciding:
        return []
    axis = factor_axis(view.head.experiment)
    alongside = next(point.alongside for point in view.points if point.deciding)
    metrics = [view.deciding[0].metric, *(table.metric for table in alongside)]
    figures = [_metric_along(view, axis, metric) for metric in metrics]
    if not view.has_ranks:  # else each point has a baseline of its own
        figures.insert(0, _ratios_along(view, axis))
    return [figure for figure in figures if figure]


@dataclass(frozen=True)
class Axis:
    """The first factor, along which points are drawn."""

    key: str
    title: str
    scale: Literal["log", "linear", "names"]
    numbers: list[float]
    """Its levels; empty where they are names."""
    names: list[str]

    @property
    def intervals(self) -> str:
        """What intervals are drawn as."""
        return "Bars" if self.scale == "names" else "Bands"

    def place(self, level: Level) -> Level:
        return text.level(level) if self.scale == "names" else level

    def encode(self) -> alt.X:
        """Return the axis across a chart."""
        if self.scale == "names":
            axis = alt.Axis(labelAngle=0, labelLimit=160)
            return alt.X("level:N", title=self.title, sort=self.names, axis=axis)
        outermost = [min(self.numbers), max(self.numbers)]
        scale = alt.Scale(type=self.scale, domain=outermost, nice=False, padding=14)
        axis = alt.Axis(values=self.numbers, labelExpr=GROUPED, labelOverlap="greedy", grid=False)
        return alt.X("level:Q", title=self.title, scale=scale, axis=axis)


def factor_axis(experiment: Experiment) -> Axis:
    """Return the axis that fits the first factor's levels."""
    key, levels = next(iter(experiment.factors.items()))
    title = text.factor_names(experiment.factors)[key]
    names = [text.level(level) for level in levels]
    numbers = [
        level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)
    ]
    if len(numbers) < len(levels):
        return Axis(key, title, "names", [], names)
    return Axis(key, title, "log" if in_powers(numbers) else "linear", numbers, names)


def in_powers(numbers: Sequence[float]) -> bool:
    """Whether numbers grow by factors rather than by steps."""
    ordered = sorted(set(numbers))
    if ordered[0] <= 0 or ordered[-1] < FEWEST_FOR_LOG * ordered[0]:
        return False
    steps = [after - before for before, after in pairwise(ordered)]
    factors = [log(after / before) for before, after in pairwise(ordered)]
    return pstdev(factors) / fmean(factors) <= pstdev(steps) / fmean(steps)


@dataclass(frozen=True)
class _Upright:
    title: str
    kind: Literal["log", "linear"]
    domain: tuple[float, float]
    labels: str = GROUPED

    def encode(self, field: str) -> alt.Y:
        """Return the axis with a field on it."""
        scale = alt.Scale(type=self.kind, domain=list(self.domain), nice=False, clamp=True)
        axis = (
            ratio_axis(*self.domain)
            if self.labels == FACTOR
            else alt.Axis(labelExpr=self.labels, tickCount=6, labelOverlap="greedy")
        )
        return alt.Y(f"{field}:Q", title=self.title, scale=scale, axis=axis)

    def cut(self, rows: Rows) -> Rows:
        """Return where intervals continue beyond the axis's ends: a mark for each."""
        low, high = self.domain
        above = [row | {"end": high, "arrow": UP} for row in rows if row["high"] > high]
        below = [row | {"end": low, "arrow": DOWN} for row in rows if row["low"] < low]
        return above + below


CUT = " An arrowhead: it continues beyond the axis."


def _metric_along(view: RunView, axis: Axis, metric: Metric) -> Figure | None:
    rows = value_rows(view.points, axis, metric.name)
    if not rows:
        return None
    estimates = [row["value"] for row in rows]
    wide = metric.unit == "µs" and max(estimates) > WIDE * min(estimates)
    title, high = metric_axis(metric), max(estimates) * ROOM
    if wide:
        upright = _Upright(f"{title} (log scale)", "log", (min(estimates) / ROOM, high))
    else:
        upright = _Upright(title, "linear", (0.0, high))
    return Figure(
        name=metric.name,
        title=metric_label(metric),
        caption=f"{metric.better.capitalize()} is better. {axis.intervals}: 95% CIs."
        f"{CUT if upright.cut(rows) else ''}",
        panels=_panels(metric.name, view, rows, axis, upright),
        by_variant=True,
    )


def value_rows(points: Sequence[PointView], axis: Axis, metric: str) -> Rows:
    """Return a row per point and variant that has a value."""
    return [
        _place(point, axis, value.variant)
        | {
            "value": value.interval.estimate,
            "low": value.interval.low,
            "high": value.interval.high,
            "told": "{}, {}: {} ({})".format(
                value.variant, point.label, *value_and_interval(value)
            ),
        }
        for point in points
        for value in point.judgement.variants
        if value.metric == metric and value.interval
    ]


def _ratios_along(view: RunView, axis: Axis) -> Figure | None:
    rows = _ratio_rows(view.points, axis)
    if not rows:
        return None
    metric = view.deciding[0].metric
    compared = [comparison for table in view.deciding for comparison in table.comparisons]
    against = compared[0].b
    delta = max(comparison.delta for comparison in compared)
    farthest = max(abs(log(each)) for each in [1 + delta, *(row["value"] for row in rows)])
    reach, near = exp(farthest) * ROOM, (1 + delta) ** 3
    low = 1 / (reach if any(row["value"] < 1 for row in rows) else near)
    high = reach if any(row["value"] > 1 for row in rows) else near
    upright = _Upright(f"Ratio to {against} (log scale)", "log", (low, high), FACTOR)
    return Figure(
        name="ratios",
        title="",
        caption=f"Each variant ÷ {against}; {metric.better} is better. "
        f"{axis.intervals}: the {confidence_words(view.deciding)} CIs that verdicts rest on."
        f"{CUT if upright.cut(rows) else ''}",
        note=band_words(comparison.delta for comparison in compared),
        panels=_panels("ratios", view, rows, axis, upright),
        by_variant=True,
        without=against,
    )


def _ratio_rows(points: Sequence[PointView], axis: Axis) -> Rows:
    return [
        _place(point, axis, comparison.a)
        | ratio_row(comparison)
        | {
            "value": comparison.ratio.estimate,
            "low": comparison.decisive.low,
            "high": comparison.decisive.high,
            "told": f"{comparison.a}, {point.label}: {sure_ratio(comparison)} "
            f"({sure_bounds(comparison)}), {comparison.verdict}",
        }
        for point in points
        if point.deciding
        for comparison in point.deciding.comparisons
        if comparison.ratio and comparison.decisive
    ]


def _place(point: PointView, axis: Axis, variant: str) -> dict[str, Any]:
    others = {key: level for key, level in point.levels.items() if key != axis.key}
    names = text.factor_names(point.levels)
    return {
        "variant": variant,
        "level": axis.place(point.levels[axis.key]),
        "facet": ", ".join(f"{names[key]} = {text.level(each)}" for key, each in others.items()),
    }


def _panels(
    name: str, view: RunView, rows: Rows, axis: Axis, upright: _Upright
) -> tuple[Panel, ...]:
    facets = dict.fromkeys(row["facet"] for row in rows)
    variants = view.variants
    panels = []
    for number, heading in enumerate(facets):
        shown = [row for row in rows if row["facet"] == heading]
        said = "; ".join(row["told"] for row in shown)
        panels.append(
            panel(
                f"{name}-{number}",
                f"{upright.title}. {said}",
                _along(variants, shown, axis, upright),
                heading=heading,
                height=PANEL_PX,
                is_half=len(facets) > 1,
            )
        )
    return tuple(panels)


def _along(variants: Sequence[str], rows: Rows, axis: Axis, upright: _Upright) -> Layers:
    color, shape, dash = variant_encodings(variants)
    base = alt.Chart(values(rows)).encode(x=axis.encode(), color=color)
    layers: list[Any] = _equivalence(rows, axis, upright)
    ends = {"y": upright.encode("low"), "y2": "high:Q"}
    if axis.scale == "names":
        drawn = {row["variant"] for row in rows}
        next_to = [variant for variant in variants if variant in drawn]
        base = base.encode(xOffset=alt.XOffset("variant:N").scale(domain=next_to))
        layers.append(base.mark_rule(strokeWidth=3, strokeCap="round", aria=False).encode(**ends))
    else:
        line = base.mark_line(strokeWidth=2.5, aria=False)
        layers += [
            base.mark_area(clip=True, aria=False, opacity=BAND_OPACITY).encode(**ends),
            line.encode(y=upright.encode("value"), strokeDash=dash),
        ]
    points = base.mark_point(filled=True, size=75, opacity=1)
    arrows = base.properties(data=values(upright.cut(rows)))
    layers.append(
        arrows.mark_point(filled=True, size=70, opacity=1, aria=False).encode(
            y=upright.encode("end"),
            shape=alt.Shape("arrow:N", legend=None, scale=None),
        )
    )
    layers.append(points.encode(y=upright.encode("value"), shape=shape, description=TOOLTIP))
    chart: Layers = alt.layer(*layers).resolve_scale(shape="independent")
    return chart


def _equivalence(rows: Rows, axis: Axis, upright: _Upright) -> list[Any]:
    bands = {row["level"]: (row["even_low"], row["even_high"]) for row in rows if "even_low" in row}
    if not bands:
        return []
    data = [{"level": each, "low": low, "high": high} for each, (low, high) in bands.items()]
    everywhere_alike, color = len(set(bands.values())) == 1, css_variable("band")
    band = alt.Chart(values(data[:1] if everywhere_alike else data))
    band = band.encode(y=upright.encode("low"), y2="high:Q")
    if everywhere_alike:
        shaded = band.mark_rect(color=color, aria=False)
    elif axis.scale == "names":
        shaded = band.mark_rect(color=color, aria=False).encode(x=axis.encode())
    else:
        shaded = band.mark_area(color=color, aria=False).encode(x=axis.encode())
    one = alt.Chart(values([{"one": 1}])).mark_rule(color=css_variable("ink-soft"), aria=False)
    return [shaded, one.encode(y=upright.encode("one"))]
