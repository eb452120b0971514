"""Documents as a terminal shows them."""

from collections.abc import Sequence
from io import StringIO

from rich.console import Console

from webdyno.media.document import Document
from webdyno.media.terminal import print_document


def in_terminal(
    document: Document,
    width: int = 100,
    below: Sequence[tuple[str, str]] = (),
    *,
    coloured: bool = False,
) -> str:
    """Print a document; give what was printed."""
    output = StringIO()
    console = Console(file=output, width=width, color_system="standard" if coloured else None)
    print_document(console, document, below)
    return output.getvalue()
