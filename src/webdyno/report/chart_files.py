"""A run's charts as files of their own."""

import re
from collections.abc import Iterator
from pathlib import Path

import vl_convert

from webdyno.core.files import write_whole
from webdyno.media import document as doc
from webdyno.media.drawing import FONT, LIGHT, Mark, marks
from webdyno.report.result_page import all_figures
from webdyno.report.show import RunView

VARIABLE = re.compile(r"var\(--([\w-]+)\)")
SCALE = 2.0
"""Of PNGs, for screens with small pixels."""


def write_charts(folder: Path, view: RunView) -> list[Path]:
    """Write each chart of the page as SVG and PNG; give the files.

    The folder is made where it isn't there; one that is a link is refused. Raise OperationError
    where they can't be written.
    """
    written = []
    for _, panel, drawn in charts(view):
        for file, content in (
            (folder / f"{panel.name}.svg", drawn.encode()),
            (folder / f"{panel.name}.png", vl_convert.svg_to_png(drawn, scale=SCALE)),
        ):
            write_whole(file, content, below=folder.parent)
            written.append(file)
    return written


def charts(view: RunView) -> Iterator[tuple[doc.Figure, doc.Panel, str]]:
    """Give each chart of the page with what it is part of, and as SVG that stands alone."""
    known = marks(view.head.experiment.variants)
    for figure in all_figures(view):
        for panel in figure.panels:
            yield figure, panel, _standalone(panel.svg, known)


def _standalone(svg: str, known: list[Mark]) -> str:
    """Give a page's chart the colours, font and background that it has from the page."""
    colours = LIGHT | {mark.variable: LIGHT[mark.colour] for mark in known}
    coloured = VARIABLE.sub(lambda match: colours.get(match[1], LIGHT["ink"]), svg)
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
    opened = coloured.replace("<svg ", begin, 1)
    head, end, rest = opened.partition(">")
    return f'{head}{end}<rect width="100%" height="100%" fill="{LIGHT["card"]}"/>{rest}'
