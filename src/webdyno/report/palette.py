"""Colours and marks: told apart by colour-blind people, by shape as well, in light and dark.

Series colours follow Okabe and Ito, "Color Universal Design" (2008), darkened or lightened until
they keep a contrast of 3:1 against the page.
"""

from collections.abc import Sequence
from typing import Any

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
"""How many arms get a colour of their own; further arms begin again with other shapes."""

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
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 2, 1, 2], [1, 3])

FONT = (
    "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, "
    "sans-serif"
)


def variable(name: str) -> str:
    """Give a colour of the page's style sheet, so that a chart follows the colour scheme."""
    return f"var(--{name})"


def series(arms: Sequence[str]) -> tuple[list[str], list[str], list[list[int]]]:
    """Give colours, shapes and dashes of the arms, in their order."""
    numbers = range(len(arms))
    return (
        [variable(f"series-{number % SERIES + 1}") for number in numbers],
        [SHAPES[number % len(SHAPES)] for number in numbers],
        [DASHES[number % len(DASHES)] for number in numbers],
    )


CONFIG: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "padding": 2,
    "view": {"stroke": None},
    "text": {"fontSize": 13, "color": variable("ink"), "baseline": "middle"},
    "axis": {
        "domainColor": variable("line"),
        "tickColor": variable("line"),
        "gridColor": variable("line"),
        "labelColor": variable("ink-soft"),
        "titleColor": variable("ink-soft"),
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelPadding": 5,
    },
    "axisY": {"domain": False, "ticks": False},
}
"""How Vega draws: quiet axes, the page's font and colours."""
