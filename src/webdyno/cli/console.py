"""The consoles that commands print to: whatever is printed is text, whoever wrote it.

Names of arms, levels, paths, titles, what servers answered and logged: square brackets in them are
no markup, and control characters, which could move a terminal's cursor, are shown as what they are.
"""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\n"): "\n",
    ord("\t"): "\t",
}


def printable(text: str) -> str:
    """Spell control characters out; lines and tabs stay."""
    return text.translate(CONTROLS)


def console(*, stderr: bool = False) -> Console:
    """Give the console for what a command has to say."""
    return _PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False)


class _PlainConsole(Console):
    """Everything that is printed comes through `render`, however deep inside a table."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Give segments whose texts hold no control characters."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n":
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)
