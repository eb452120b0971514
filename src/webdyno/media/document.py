"""What a result says, as blocks in the order of reading: terminal, page and Markdown draw them.

Who builds a document says what there is. How that looks, and what of it a medium has no room for,
is decided where the medium draws.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from webdyno.core.judgement import Verdict

Facts = list[tuple[str, str]]


class Headline(NamedTuple):
    """A verdict in large letters, and the sentence that says it."""

    tone: Verdict
    words: str
    """With a sign: nothing is known by colour alone."""
    sentence: str
    further: Sequence[str] = ()
    """What else is to be said at once, such as what limited a variant."""
    facts: Sequence[tuple[str, str]] = ()
    """Where it is open or invalid: what is known, why, and what to do."""


class Tile(NamedTuple):
    """One figure in large digits."""

    tone: Verdict
    figure: str
    about: str
    interval: str
    word: str
    """What the colour says."""


@dataclass(frozen=True)
class Headlines:
    """What it all comes to."""

    headlines: Sequence[Headline]
    about: str = ""
    """Of several points: which one."""
    card: Sequence[tuple[str, str]] = ()
    """What it means, how sure it is and how far it reaches, for the page."""
    tiles: Sequence[Tile] = ()
    """The figures that matter most, for the page."""


@dataclass(frozen=True)
class Counts:
    """How often there is each verdict, where there are many, and what they say together."""

    counts: Sequence[tuple[Verdict, str]]
    """Each with its number and sign."""
    sentences: Sequence[str]
    card: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Callout:
    """What speaks against the figures, or is to be kept in mind with them."""

    tone: Verdict
    name: str
    means: str
    lines: Sequence[str]
    """What was found and where; of many points one example."""
    fix: str


@dataclass(frozen=True)
class Paragraph:
    """A sentence or a few."""

    text: str
    label: str = ""
    """What it is about; it stands before it."""
    look: Literal["plain", "soft", "strong"] = "plain"
    tone: Verdict | None = None


@dataclass(frozen=True)
class FactList:
    """Terms, each next to what is to be said of it."""

    facts: Facts
    tone: Verdict | None = None
    """The verdict in whose colours the first term is."""


class Cell(NamedTuple):
    """What stands in a column of a row."""

    text: str = ""
    tone: Verdict | None = None
    soft: bool = False
    strong: bool = False
    below: str = ""
    """A second and smaller line."""
    link: str = ""


Kind = Literal["words", "name", "rank", "value", "range", "ratio", "verdict"]


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    heading: str
    kind: Kind = "words"
    """`name` is what a row is about; figures are values, ranges and ratios."""
    obvious: bool = False
    """Whether a small medium can do without the heading."""
    below: str = ""
    """The heading of second lines, where these have a column of their own."""
    below_means: str = ""
    spare: bool = False
    """Whether it is excluded first where there is too little room."""

    @property
    def is_figures(self) -> bool:
        return self.kind in {"value", "range", "ratio"}


@dataclass(frozen=True)
class RowGroup:
    """Rows that belong together."""

    rows: Sequence[Sequence[Cell | str]]
    """Without what they share."""
    heading: str = ""
    note: str = ""
    shared: Sequence[str] = ()
    """What stands in the first columns, once for all of them."""

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, of cells throughout."""
        return [
            [Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in self.rows
        ]

    def lines(self) -> Iterator[list[Cell]]:
        """Yield whole rows: the first has what they share."""
        for number, row in enumerate(self.cells):
            yield [*(Cell("" if number else word) for word in self.shared), *row]


@dataclass(frozen=True)
class Table:
    """Figures next to each other."""

    columns: Sequence[Column]
    groups: Sequence[RowGroup]
    soft: bool = False
    """Whether it must not be louder than the answer."""
    style: str = ""
    """The page's own for this kind of table."""
    is_sortable: bool = False
    """Whether a reader may put its rows in another order, by a column."""

    def apart(self) -> "Table":
        """Return it with second lines in columns of their own: a cell holds one figure."""
        lines = [line for group in self.groups for line in group.lines()]
        has_second_lines = [
            bool(column.below) and any(line[place].below for line in lines)
            for place, column in enumerate(self.columns)
        ]
        columns: list[Column] = []
        for column, has_two in zip(self.columns, has_second_lines, strict=True):
            columns.append(column)
            if has_two:
                columns.append(Column(column.below, column.kind, spare=True))
        groups = []
        for group in self.groups:
            has_two_lines = has_second_lines[len(group.shared) :]
            rows = [_apart(row, has_two_lines) for row in group.cells]
            groups.append(replace(group, rows=rows))
        return replace(self, columns=columns, groups=groups)

    @property
    def second_lines(self) -> list[str]:
        """What the second lines mean that there are."""
        rows = [line for group in self.groups for line in group.lines()]
        columns = zip(self.columns, zip(*rows, strict=True), strict=True)
        return [
            column.below_means for column, cells in columns if any(cell.below for cell in cells)
        ]


def _apart(row: Sequence[Cell], has_second_lines: Sequence[bool]) -> list[Cell]:
    cells: list[Cell] = []
    for cell, has_two in zip(row, has_second_lines, strict=True):
        if has_two:
            cells += [cell._replace(below=""), Cell(cell.below, soft=True)]
        else:
            cells.append(cell)
    return cells


def simple_table(
    columns: Mapping[str, Kind], rows: Iterable[Sequence[Cell | str]], style: str = ""
) -> Table:
    """Return a table of rows that all belong together; what they are about needs no heading."""
    heads = [Column(heading, kind, obvious=kind == "name") for heading, kind in columns.items()]
    return Table(heads, [RowGroup(list(rows))], style=style)


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines to be copied."""

    text: str


@dataclass(frozen=True)
class Links:
    """Other pages, each by what it is about; without an address where there is none."""

    links: Sequence[tuple[str, str]]
    label: str = ""


class Panel(NamedTuple):
    """One chart."""

    name: str
    """Unique within a page."""
    alt: str
    """What a reader who can't see it should know."""
    svg: str
    heading: str = ""
    narrow_svg: str = ""
    """The same for a phone; none of a chart that can't be drawn so narrow."""
    is_half: bool = False
    """Whether it is drawn so small that two fit next to each other."""


@dataclass(frozen=True)
class Figure:
    """A chart, or several of a kind next to each other, with the words around."""

    name: str
    title: str
    """None where the heading of its section says it."""
    caption: str
    panels: tuple[Panel, ...]
    by_variant: bool
    """Whether colours distinguish variants, so that a legend is needed."""
    note: str = ""
    """How to read it, for those who want to know; below the chart."""
    without: str = ""
    """A variant that isn't in it: the baseline of ratios."""

    def with_prefix(self, prefix: str) -> "Figure":
        """Return the figure under another name, for a page that has several of its kind."""
        panels = tuple(panel._replace(name=prefix + panel.name) for panel in self.panels)
        return replace(self, name=prefix + self.name, panels=panels)


@dataclass(frozen=True)
class Section:
    """What belongs under one heading."""

    heading: str
    blocks: Sequence["Block"]
    note: str = ""
    """How it is to be read, where there is room for it."""
    brief: str = ""
    """The same in a few words, where there isn't."""
    soft: bool = False
    anchor: str = ""
    """Its name among the links at the top of a page; none without."""
    is_closed: bool = False
    """Whether a page shows the heading alone until the reader opens it."""


@dataclass(frozen=True)
class Folded:
    """What is shown on demand."""

    summary: str
    blocks: Sequence["Block"]
    verdict: Cell | None = None
    is_open: bool = False


Block = (
    Headlines
    | Counts
    | Callout
    | Paragraph
    | FactList
    | Table
    | Heading
    | Code
    | Links
    | Figure
    | Section
    | Folded
)


@dataclass(frozen=True)
class Document:
    """A result."""

    title: str
    about: str
    blocks: Sequence[Block]
    in_one_line: bool = False


def said_section(
    heading: str, sentences: Iterable[str], note: str = "", brief: str = ""
) -> Iterator[Section]:
    """Yield a section of sentences, one a paragraph; none where there are no sentences."""
    if said := list(map(Paragraph, sentences)):
        yield Section(heading, said, note, brief)
