"""How charts are drawn: colours and marks, what a chart is made of, the picture that it becomes.

Altair describes a chart and vl-convert draws it, once; the page holds the pictures. Their colours
are variables of its style sheet, so that they follow the colour scheme and the printer. Legends
are not part of the charts: the page has one above each, which wraps on narrow screens.
"""

import re
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from webdyno.core.errors import OperationError
from webdyno.media.document import Panel

Rows = list[dict[str, Any]]
Layers = alt.LayerChart | alt.FacetChart | alt.VConcatChart

VEGA_LITE = "6.4"
ADDRESSES_BYTES = 64 * 2**30
"""What V8, which draws, reserves and more; it is no memory."""
WIDTH_PX = 760
HALF_PX, NARROW_PX = 400, 300
HEIGHT_PX = 300
GROUPED = "format(datum.value, ',.8~g')"

LIGHT = {
    "page": "#f6f7f8",
    "card": "#ffffff",
    "ink": "#1a1f26",
    "ink-soft": "#5a6572",
    "line": "#dfe3e8",
    "band": "#eceff3",
    "better": "#00705c",
    "worse": "#b23c17",
    "even": "#3f5b8c",
    "open": "#8a6100",
    "broken": "#a3123a",
    "series-1": "#0067a8",
    "series-2": "#cf5a00",
    "series-3": "#00855f",
    "series-4": "#a84a8c",
    "series-5": "#8f6a00",
    "series-6": "#4d5866",
}
"""Series colours follow Okabe and Ito, "Color Universal Design" (2008), darkened or lightened until
they keep a contrast of 3:1 against the page; in the dark as well."""
DARK = {
    "page": "#12151a",
    "card": "#1a1e25",
    "ink": "#e7eaee",
    "ink-soft": "#9ba6b3",
    "line": "#323a45",
    "band": "#272e38",
    "better": "#3ecfae",
    "worse": "#ff8f66",
    "even": "#9db7ea",
    "open": "#e3b341",
    "broken": "#ff7d9c",
    "series-1": "#5ab4f0",
    "series-2": "#ff9a4d",
    "series-3": "#3fc99c",
    "series-4": "#e596cb",
    "series-5": "#e6c14f",
    "series-6": "#b4bfcc",
}
SERIES = 6
"""How many variants get a colour of their own; further variants begin again with other shapes."""
SHAPES = (
    "M-.85,0A.85,.85,0,1,1,.85,0A.85,.85,0,1,1,-.85,0Z",
    "M-.75,-.75H.75V.75H-.75Z",
    "M0,-.95L.95,.75H-.95Z",
    "M0,-1L.85,0L0,1L-.85,0Z",
    "M0,.95L.95,-.75H-.95Z",
    "M-.33,-1H.33V-.33H1V.33H.33V1H-.33V.33H-1V-.33H-.33Z",
    "M.95,0L-.75,.95V-.95Z",
)
"""SVG paths within ±1, as Vega takes them for symbols: circle, square, triangle, diamond…"""
CROSS = "M-.7,-.7L.7,.7M-.7,.7L.7,-.7"
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 2, 1, 2], [1, 3])
FONT = (
    "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, "
    "sans-serif"
)


def css_variable(name: str) -> str:
    return f"var(--{name})"


CONFIG: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "padding": 2,
    "view": {"stroke": None},
    "text": {"fontSize": 13, "color": css_variable("ink"), "baseline": "middle"},
    "axis": {
        "domainColor": css_variable("line"),
        "tickColor": css_variable("line"),
        "gridColor": css_variable("line"),
        "labelColor": css_variable("ink-soft"),
        "titleColor": css_variable("ink-soft"),
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelPadding": 5,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    },
    "axisY": {"domain": False, "ticks": False},
    "title": {"color": css_variable("ink"), "fontWeight": 600},
}


@dataclass(frozen=True)
class Mark:
    """How a variant looks in every chart of a page."""

    variant: str
    variable: str
    """Name of its colour, its own even where variants share one: the page picks out variants by
    it."""
    colour: str
    shape: str
    dash: list[int]


def marks(variants: Iterable[str]) -> list[Mark]:
    """Return each variant's mark, in the variants' order."""
    return [
        Mark(
            variant=variant,
            variable=f"variant-{number}",
            colour=f"series-{number % SERIES + 1}",
            shape=SHAPES[number % len(SHAPES)],
            dash=DASHES[number % len(DASHES)],
        )
        for number, variant in enumerate(variants)
    ]


def variant_encodings(variants: Iterable[str]) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """Return colour, shape and dash of each variant."""
    known = marks(variants)
    names = [mark.variant for mark in known]
    colours = [css_variable(mark.variable) for mark in known]
    return (
        alt.Color("variant:N", legend=None).scale(domain=names, range=colours),
        alt.Shape("variant:N", legend=None).scale(
            domain=names, range=[mark.shape for mark in known]
        ),
        alt.StrokeDash("variant:N", legend=None).scale(
            domain=names, range=[mark.dash for mark in known]
        ),
    )


def values(rows: Rows) -> alt.InlineData:
    return alt.InlineData(values=rows)


TOOLTIP = alt.Description("told:N")
"""What a mark says when it is pointed at."""


def demand_addresses() -> None:
    """Raise OperationError where a limit would end the process in the middle of a chart."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < ADDRESSES_BYTES:
        raise OperationError(
            f"charts can't be drawn: their program reserves {ADDRESSES_BYTES // 2**30} GiB of "
            f"addresses, and this shell allows {limit / 2**30:.2g} GiB; lift that limit with "
            "ulimit -v unlimited"
        )


def drawn(chart: Layers, *, height: int = HEIGHT_PX, width: int = WIDTH_PX) -> str:
    """Draw a chart, or charts below each other that are as large each."""
    demand_addresses()
    # A chart that isn't right fails below all the same; looking at its schema takes as long again.
    spec = chart.to_dict(validate=False) | {"config": CONFIG}
    for each in spec.get("vconcat", [spec]):
        each |= {"width": width, "height": height}
    return _lean(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))


def panel(
    name: str,
    alt_text: str,
    chart: Layers,
    *,
    heading: str = "",
    height: int = HEIGHT_PX,
    is_half: bool = False,
) -> Panel:
    """Draw a chart as a panel of a figure, for wide and for narrow screens; or as one of two."""
    wide = drawn(chart, height=height, width=HALF_PX if is_half else WIDTH_PX)
    narrow = drawn(chart, height=height, width=NARROW_PX)
    return Panel(name, alt_text, wide, heading, narrow, is_half=is_half)


TAG = re.compile(r"<[^<>]*>")
"""Vega escapes both brackets in texts and in what marks say."""
UNSEEN = re.compile(r'<path [^>]*(?:display="none"|d="M0,0h0v0h0Z")[^>]*/>')
SAID_BY_THE_PAGE = re.compile(
    r' (?:role|aria-roledescription|aria-hidden|pointer-events|font-family|xmlns[:a-z]*)="[^"]*"'
    r'| aria-label="[XY]-axis titled [^"]*"'
)
FRACTION = re.compile(r"(\.\d\d)\d+")
GEOMETRY = re.compile(r' (?:d|transform|x2|y2)="[^"]*"')


def _lean(svg: str) -> str:
    """Exclude what the page says itself and what nobody sees."""

    def lean_tag(tag: re.Match[str]) -> str:
        # A label is for what has a role: the picture as a whole; its marks are only pointed at.
        kept = SAID_BY_THE_PAGE.sub("", tag[0]).replace(' aria-label="', ' data-told="')
        return GEOMETRY.sub(lambda attribute: FRACTION.sub(r"\1", attribute[0]), kept)

    return TAG.sub(lean_tag, UNSEEN.sub("", svg))
