"""Documents as Markdown: for a pull request, a chat, a wiki."""

import re
from collections.abc import Iterable, Iterator

from webdyno.model.text import printable
from webdyno.report import document as doc

MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~@])")


def unmarked(text: str) -> str:
    """Keep text from being read as markup or as a mention of somebody."""
    return MARKUP.sub(r"\\\1", printable(text).replace("\n", " "))


def markdown(document: doc.Document) -> str:
    """Write a digest; what only a page has room for is excluded."""
    lines = [f"### {unmarked(document.title)}", "", unmarked(document.about)]
    before: doc.Block | None = None
    for block in document.blocks:
        lines += [""] * (not isinstance(before, doc.Callout) or not isinstance(block, doc.Callout))
        lines += _lines(block)
        before = block
    return "\n".join(lines).rstrip() + "\n"


def _lines(block: doc.Block, corner: str = "") -> Iterator[str]:
    """Write a block; of a table `corner` is what its figures are."""
    match block:
        case doc.Headlines():
            for number, it in enumerate(block.headlines):
                yield from [""] * bool(number)
                said = " ".join([it.sentence, *it.further])
                yield f"**{unmarked(it.words)}**: {unmarked(said)}"
        case doc.Counts():
            yield " · ".join(f"**{unmarked(words)}**" for _, words in block.counts)
            yield from ("", *(f"- {unmarked(sentence)}" for sentence in block.sentences))
        case doc.Callout():
            yield f"- **{unmarked(block.name)}**: {unmarked(' '.join(block.told))}"
        case doc.FactList():
            yield from (f"{unmarked(term)}: {unmarked(said)}  " for term, said in block.facts)
        case doc.Table():
            yield from _table(block, corner)
        case doc.Section():
            for each in block.blocks:
                yield from _lines(each, block.heading)


def _table(table: doc.Table, corner: str) -> Iterator[str]:
    """Write a table, or one for each of its groups that has a heading."""
    together = [line for group in table.groups if not group.heading for line in group.lines()]
    parts = [(corner, together)] if together else []
    parts += [(group.heading, list(group.lines())) for group in table.groups if group.heading]
    for number, (heading, rows) in enumerate(parts):
        yield from [""] * bool(number)
        yield from table_lines(
            (heading or it.heading if it.kind == "name" else it.heading for it in table.columns),
            (map(_written, table.columns, row) for row in rows),
        )


def _written(column: doc.Column, cell: doc.Cell) -> str:
    below = f" ({column.below} {cell.below})" if column.below and not column.spare else ""
    return cell.text + below if cell.below else cell.text


def table_lines(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Write a table of texts."""
    heads = list(headings)
    yield _row(heads)
    yield _row(["---"] * len(heads))
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(unmarked, cells))} |"
