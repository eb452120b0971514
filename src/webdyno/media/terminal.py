"""Documents in the terminal: lines of its width, colours only where there are some.

What is folded and what is drawn is left to the page.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from webdyno.core.format import bound
from webdyno.core.judgement import Verdict
from webdyno.media import document as doc
from webdyno.media.console import plain_console

WIDTH = 100
"""Columns that a document takes at most, on however wide a terminal."""
INDENT = 2
GAP = 2
FEWEST_OF_NAMES = 20
"""Columns that are left to the names of rows, for these to be in a table."""
NARROWEST_TERMS = 7
"""Columns of facts' terms at least, so that lists of them line up."""
BROKEN_HEADING = 12
"""Columns of a heading's longest word from which on that is broken."""
FEWEST_OF_WORDS = 9
"""Columns that are left to words before figures, however little room there is."""

NO_BREAK = "\xa0"
WORD = re.compile(r" +|[^ ]+")
PART = re.compile(r".+?(?:[-_/:]+|\.(?=[a-z])|\Z)")
"""Of a name, path or URL that is too long for a line."""

STYLES = {
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold red",
    Verdict.EQUIVALENT: "bold cyan",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.INVALID: "bold red",
    Verdict.INCOMPLETE: "bold yellow",
    Verdict.MEASURED: "bold cyan",
}
LOOKS = {"plain": "", "soft": "dim", "strong": "bold"}


def print_document(
    console: Console, document: doc.Document, below: Sequence[tuple[str, str]] = ()
) -> None:
    """Print a document, and below it such as where its page is and what to ask next."""
    width = min(console.width, WIDTH)
    parts: list[RenderableType] = []
    if document.title:
        title, about = Text(document.title, style="bold"), Text(document.about, style="dim")
        if document.in_one_line and title.cell_len + GAP + about.cell_len <= width:
            parts += [Text.assemble(title, " " * GAP, about), Text()]
        else:
            parts += [title, about, Text()]
    parts += _blocks(_with_facts(document.blocks, below), width)
    console.print(_Trimmed(Group(*parts)), width=width, highlight=False)


class _Trimmed:
    """Lines without the blanks that fill tables up to their width."""

    def __init__(self, whole: Group) -> None:
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._whole, options, pad=False):
            seen = (n for n, part in enumerate(line, 1) if part.text.strip() or _is_reversed(part))
            *kept, last = line[: max(seen, default=0)] or [Segment("")]
            yield from kept
            yield last if _is_reversed(last) else last._replace(text=last.text.rstrip())
            yield Segment.line()


def _is_reversed(part: Segment) -> bool:
    return bool(part.style and part.style.reverse)


def _with_facts(blocks: Sequence[doc.Block], facts: Sequence[tuple[str, str]]) -> list[doc.Block]:
    """Add facts below blocks, to those that stand last."""
    if not facts:
        return list(blocks)
    if blocks and isinstance(last := blocks[-1], doc.FactList):
        return [*blocks[:-1], replace(last, facts=[*last.facts, *facts])]
    return [*blocks, doc.FactList(list(facts))]


def document_text(document: doc.Document) -> str:
    """Return a document as lines without colours."""
    console = plain_console(width=WIDTH)
    console.no_color = True
    with console.capture() as captured:
        print_document(console, document)
    return Text.from_ansi(captured.get()).plain + "\n"


def _blocks(blocks: Sequence[doc.Block], width: int) -> Iterator[RenderableType]:
    """Draw blocks below each other, with an empty line between two that aren't both sentences."""
    before: doc.Block | None = None
    for block in blocks:
        if drawn := list(_drawn(block, width)):
            both_said = isinstance(before, doc.Paragraph) and isinstance(block, doc.Paragraph)
            if before is not None and not both_said:
                yield Text()
            yield from drawn
            before = block


def _drawn(block: doc.Block, width: int) -> Iterator[RenderableType]:
    match block:
        case doc.Headlines():
            yield from _headlines(block, width)
        case doc.Counts():
            yield Text("  ").join(
                Text(f" {words} ", style=f"reverse {STYLES[verdict]}")
                for verdict, words in block.counts
            )
            yield from (wrap_text(sentence, width, "bold") for sentence in block.sentences)
        case doc.Callout():
            heading = (f"⚠ {block.name}", STYLES[block.tone]), (f"  {block.means}", "dim")
            lines = [*block.lines, f"→ {block.fix}"]
            wrapped = (wrap_text(line, width - INDENT) for line in lines)
            yield _inside([Text.assemble(*heading), *wrapped])
        case doc.Paragraph():
            said = f"{block.label}: {block.text}" if block.label else block.text
            style = STYLES[block.tone] if block.tone else LOOKS[block.look]
            yield wrap_text(said, width, style)
        case doc.FactList():
            yield _facts(block, width)
        case doc.Table():
            yield from _table(block, width)
        case doc.Heading():
            yield Text(block.text, style="dim")
        case doc.Code():
            yield Text(block.text)
        case doc.Section():
            yield from _section(block, width)


def _section(section: doc.Section, width: int) -> Iterator[RenderableType]:
    said = f"{section.heading}: {section.brief}" if section.brief else section.heading
    yield wrap_text(said, width, "dim italic" if section.soft else "bold")
    before: doc.Block | None = None
    for block in section.blocks:
        both_facts = type(block) is type(before) is doc.FactList
        if before and (both_facts or isinstance(block, doc.Heading)):
            yield Text()
        yield _inside(_drawn(block, width - INDENT))
        before = block


def _inside(parts: Iterable[RenderableType]) -> Padding:
    return Padding(Group(*parts), (0, 0, 0, INDENT))


def _headlines(block: doc.Headlines, width: int) -> Iterator[RenderableType]:
    if block.about:
        yield Text(block.about, style="bold")
    for headline in block.headlines:
        said = wrap_text(f"{headline.words}: {headline.sentence}", width, "bold")
        said.stylize(STYLES[headline.tone], 0, len(headline.words))
        yield said
        yield from (wrap_text(line, width) for line in headline.further)
    if facts := [fact for headline in block.headlines for fact in headline.facts]:
        yield from (Text(), _facts(doc.FactList(facts), width))


def _facts(block: doc.FactList, width: int) -> Grid:
    longest = max(len(term) for term, _ in block.facts)
    longest = min(max(longest, NARROWEST_TERMS), width // 2)
    grid = Grid.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for number, (term, said) in enumerate(block.facts):
        style = STYLES[block.tone] if block.tone and number == 0 else "dim"
        grid.add_row(wrap_text(term, longest, style), wrap_text(said, width - longest - GAP))
    return grid


class _Drawn(NamedTuple):
    column: doc.Column
    heading: Text
    cells: list[Text]

    def width(self, *, folded: bool = False) -> int:
        """Return how many columns of the terminal it takes, its heading folded or not."""
        words = self.heading.plain.split() if folded else [self.heading.plain]
        return max(0, *map(cell_len, words), *(cell.cell_len for cell in self.cells))

    def needed(self, width: int) -> int:
        """Return how much of a width its lines take."""
        lines = broken(self.heading, width).plain.splitlines()
        return min(width, max(0, *map(cell_len, lines), *(cell.cell_len for cell in self.cells)))


def _table(table: doc.Table, width: int) -> Iterator[RenderableType]:
    """Draw a table without what there is no room for, the headings of groups between its rows."""
    columns = list(_columns(table))
    while _together([column.width() for column in columns]) > width:
        spare = next((column for column in columns if column.column.spare), None)
        if spare is None:
            break
        columns.remove(spare)
    narrowest = [
        min(column.width(folded=True), FEWEST_OF_NAMES)
        if column.column.kind == "name"
        else column.width(folded=True)
        for column in columns
    ]
    if table.style == "listed" and _together(narrowest) > width:
        yield from _two_lines_a_row(table, width)
        return
    widths = _fitting(columns, width)
    if any(column.heading for column in columns):
        yield _lined_up(columns, widths, [[column.heading for column in columns]])
    rows = zip(*(column.cells for column in columns), strict=True)
    for group in table.groups:
        if group.heading:
            yield Text(group.heading, style="dim" if table.soft else "bold")
        yield _lined_up(columns, widths, islice(rows, len(group.rows)))


def _two_lines_a_row(table: doc.Table, width: int) -> Iterator[RenderableType]:
    for group in table.groups:
        yield Text(group.heading, style="bold")
        for name, *figures, last in group.cells:
            said = (
                f"{column.heading}: {figure.text}"
                for column, figure in zip(table.columns[1:-1], figures, strict=True)
                if figure.text
            )
            yield _inside([wrap_text(f"{name.text}: {last.text}", width - INDENT)])
            yield _inside([_inside([wrap_text("; ".join(said), width - 2 * INDENT)])])


def _columns(table: doc.Table) -> Iterator[_Drawn]:
    """Yield the columns of a table; a soft one has none to spare, and of two lines the second."""
    table = table if table.soft else table.apart()
    rows = []
    for group in table.groups:
        indent = " " * INDENT if group.heading else ""
        for first, *others in group.lines():
            rows.append([first._replace(text=indent + first.text), *others])
    for column, cells in zip(table.columns, zip(*rows, strict=True), strict=True):
        if table.soft and column.spare:
            continue
        heading = Text("" if column.obvious else column.heading, "dim")
        if table.soft:
            shown = (cell.below or cell.text if column.below else cell.text for cell in cells)
            yield _Drawn(column, heading, [Text(text_, "dim") for text_ in shown])
        else:
            yield _Drawn(column, heading, [Text(cell.text, _style(cell)) for cell in cells])


def _style(cell: doc.Cell) -> str:
    if cell.tone:
        return STYLES[cell.tone]
    return "dim" if cell.soft else "bold" if cell.strong else ""


def _fitting(columns: Sequence[_Drawn], width: int) -> list[int]:
    """Return the columns' widths; where that is too much heads are folded, then names broken.

    Of heads long names first, as a URL's, before the names of rows.
    """
    widths = [column.width() for column in columns]
    folded = {place: column.width(folded=True) for place, column in enumerate(columns)}
    figures = {
        place: _narrowest(column)
        for place, column in enumerate(columns)
        if column.column.is_figures
    }
    words = {
        place: FEWEST_OF_WORDS
        for place, column in enumerate(columns)
        if column.column.kind in {"words", "name"}
    }
    for least in (folded, figures, words):
        _narrow(widths, least, width)
        widths = [column.needed(wide) for column, wide in zip(columns, widths, strict=True)]
    return widths


def _narrow(widths: list[int], least: Mapping[int, int], width: int) -> None:
    """Narrow the widest columns, down to the `least` of each, until all have room."""
    while _together(widths) > width:
        wide = [place for place in least if widths[place] > least[place]]
        if not wide:
            return
        widths[max(wide, key=lambda place: widths[place])] -= 1


def _narrowest(column: _Drawn) -> int:
    """Return what a column of figures needs for these and for the words of its heading."""
    words = column.heading.plain.split()
    broken_words = chain.from_iterable(parts_of(word, BROKEN_HEADING) for word in words)
    return max(0, *map(cell_len, broken_words), *(cell.cell_len for cell in column.cells))


def _together(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _lined_up(
    columns: Sequence[_Drawn], widths: Sequence[int], rows: Iterable[Sequence[Text]]
) -> Grid:
    grid = Grid.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for shown, wide in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if shown.column.is_figures else "left"
        grid.add_column(width=wide, justify=justify, overflow="fold")
    for row in rows:
        grid.add_row(*map(broken, row, widths))
    return grid


def wrap_text(said: str, width: int, style: str = "") -> Text:
    """Break text into lines, none between a number and its unit."""
    lines = [
        line
        for paragraph in said.splitlines()
        for line in _lines(bound(paragraph, NO_BREAK), width)
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
