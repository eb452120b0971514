"""What a chart is made of, whatever it shows.

Legends are not part of the charts: the page has one above each, which wraps on narrow screens and
sets the parameter `highlighted` to the name of an arm.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from webdyno.report.chart_data import Rows
from webdyno.report.palette import CONFIG, series

Spec = dict[str, Any]
Layers = alt.LayerChart | alt.FacetChart

HEIGHT_PX = 300
MUTED = 0.12
GROUPED = "format(datum.value, ',.8~g')"


@dataclass(frozen=True)
class Panel:
    """One chart."""

    name: str
    """Unique within a page."""
    alt: str
    """What a reader who can't see it should know."""
    spec: Spec
    heading: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart, or several of a kind beside each other, with the words around."""

    name: str
    title: str
    caption: str
    """What is shown and how to read it."""
    panels: tuple[Panel, ...]
    by_arm: bool
    """Whether colours tell arms apart, so that a legend is needed."""

    def prefixed(self, prefix: str) -> "Figure":
        """Give the figure under another name, for a page that has several of its kind."""
        panels = tuple(replace(panel, name=prefix + panel.name) for panel in self.panels)
        return replace(self, name=prefix + self.name, panels=panels)


def values(rows: Rows) -> alt.InlineData:
    """Give rows as a chart's data."""
    return alt.InlineData(values=rows)


def arm_encodings(arms: Iterable[str]) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """Give colour, shape and dash of each arm, the same in all charts of a page."""
    named = list(arms)
    colors, shapes, dashes = series(named)
    return (
        alt.Color("arm:N", legend=None).scale(domain=named, range=colors),
        alt.Shape("arm:N", legend=None).scale(domain=named, range=shapes),
        alt.StrokeDash("arm:N", legend=None).scale(domain=named, range=dashes),
    )


def opacity() -> Any:  # noqa: ANN401 (altair's condition types are not public)
    """Mute what isn't of the arm that the reader picked out."""
    mine = "highlighted == '' || datum.arm == highlighted"
    return alt.when(mine).then(alt.value(1)).otherwise(alt.value(MUTED))


def spec(chart: Layers, height: int = HEIGHT_PX) -> Spec:
    """Give a chart as Vega-Lite, as wide as its place in the page."""
    drawn: Spec = chart.add_params(alt.param(name="highlighted", value="")).to_dict()
    return drawn | {"width": "container", "height": height, "config": CONFIG}
