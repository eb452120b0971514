"""The consoles that everything is printed to: whatever is printed is text, whoever wrote it.

Names of variants, levels, paths, titles, what servers answered and logged: square brackets in them
are no markup, and control characters, which could move a terminal's cursor, are shown as what they
are.
"""

import logging
import textwrap
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from webdyno.core.text import printable

logger = logging.getLogger(__name__)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return the console for what a command has to say."""
    return _PlainConsole(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


class _PlainConsole(Console):
    """All text that is printed comes through `render`, however deep inside a table."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return segments whose texts hold no control characters."""
        if isinstance(renderable, str):
            renderable = printable(renderable)
        elif isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = printable(renderable.plain)
        return super().render(renderable, options)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str | Text]], figures: Collection[str] = ()
) -> None:
    """Print rows below headings; `figures` are the columns that are lined up at their ends."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        justify: JustifyMethod = "right" if heading in figures else "left"
        table.add_column(heading, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    plain_console().print(table)


def notify(text: str) -> None:
    """Say something that is no result, on standard error."""
    print_notice(plain_console(stderr=True), text)


def print_notice(console: Console, text: str) -> None:
    """Print something that is no result: in a terminal in lines that end with a word.

    Paths and commands that are longer than a line stay whole, and elsewhere so do all lines.
    """
    logger.debug("says: %s", text)
    lines = printable(text).split("\n")  # before a line's end stands in the middle of a secret
    if console.is_terminal:
        lines = [_filled(line, console.width) for line in lines]
    console.print("\n".join(lines), soft_wrap=True)


def _filled(line: str, width: int) -> str:
    return textwrap.fill(
        line, width, replace_whitespace=False, break_long_words=False, break_on_hyphens=False
    )
