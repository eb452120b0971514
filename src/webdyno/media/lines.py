"""Lines of a terminal: text broken between words, and long names where their parts meet."""

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells
from rich.text import Text

from webdyno.core import format as text

NO_BREAK = "\xa0"
WORD = re.compile(r" +|[^ ]+")
PART = re.compile(r".+?(?:[-_/:]+|\.(?=[a-z])|\Z)")
"""Of a name, path or URL that is too long for a line."""


def wrap_text(said: str, width: int, style: str = "") -> Text:
    """Break text into lines, none between a number and its unit."""
    lines = [
        line
        for paragraph in said.splitlines()
        for line in _lines(text.bound(paragraph, NO_BREAK), width)
    ]
    return Text("\n".join(lines).replace(NO_BREAK, " "), style)


def broken(cell: Text, width: int) -> Text:
    """Return a table's cell in lines that are no wider, as far indented as it is."""
    if cell.cell_len <= width:
        return cell
    said = cell.plain.lstrip()
    indent = " " * (cell.cell_len - cell_len(said))
    lines = _lines(said, width - len(indent))
    return Text("\n".join(indent + line for line in lines), cell.style)


def _lines(said: str, width: int) -> list[str]:
    lines = [""]
    for word in WORD.findall(said):
        for part in parts_of(word, max(width, 1)):
            if lines[-1].strip() and cell_len((lines[-1] + part).rstrip()) > width:
                lines.append(part.lstrip())
            else:
                lines[-1] += part
    return [line.rstrip() for line in lines if line.strip()]


def parts_of(word: str, width: int) -> Iterator[str]:
    """Yield a word, or where that is wider its parts, none of them wider."""
    if cell_len(word) <= width:
        yield word
    else:
        for part in PART.findall(word):
            yield from chop_cells(part, width)
