"""Documents as Markdown: for a pull request, a chat, a wiki."""

import re
from collections.abc import Iterable, Iterator

from webdyno.core.text import printable
from webdyno.media import document as doc

LINE_ENDS = re.compile("[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]+")
MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&]")
REFERENCES = re.compile(
    r"@(?=\S)|[#!$%~&](?=[\w\"'])|[\[*^](?=\w+[:#])|://|www(?=\.)|G[HL]-(?=\d)", re.IGNORECASE
)
"""What forges make links, labels and mentions of, also where it is escaped: they look for it in
what was rendered, https://docs.github.com/get-started/writing-on-github and
https://docs.gitlab.com/user/markdown/#gitlab-specific-references."""
BEGINNINGS = re.compile(r"[/+=:-]|\d+[.)](?:\s|$)")
"""What is a quick action of GitLab's at the beginning of a line, a list, or a line below a heading:
https://docs.gitlab.com/user/project/quick_actions/."""
APART = "\u200b"
"""Of no width: what stands on both sides belongs together for readers alone."""


def without_markup(text: str, *, begins: bool = True) -> str:
    """Return what anybody wrote as a line of text: no markup, link, mention or quick action."""
    line = LINE_ENDS.sub(" ", printable(text)).strip()
    apart = REFERENCES.sub(lambda match: f"{match[0][:1]}{APART}{match[0][1:]}", line)
    guard = APART if begins and BEGINNINGS.match(line) else ""
    return guard + MARKUP.sub(r"\\\g<0>", apart)


def within(text: str) -> str:
    """Return what anybody wrote as text behind something of ours in the same line."""
    return without_markup(text, begins=False)


def markdown(document: doc.Document) -> str:
    """Write a digest; without a title its first headline is the heading."""
    first, *blocks = document.blocks
    if document.title:
        blocks = [first, *blocks]
        lines = [f"### {within(document.title)}", "", without_markup(document.about)]
    elif isinstance(first, doc.Headlines):
        said = (within(f"{each.words}: {each.sentence}") for each in first.headlines)
        lines = [f"### {' '.join(said)}", *_below_headlines(first)]
    else:
        lines = list(_lines(first))
    before: doc.Block | None = None
    for block in blocks:
        lines += [""] * (not isinstance(before, doc.Callout) or not isinstance(block, doc.Callout))
        lines += _lines(block)
        before = block
    return "\n".join(lines).strip() + "\n"


def _lines(block: doc.Block, corner: str = "") -> Iterator[str]:
    """Write a block; of a table `corner` is what its figures are."""
    match block:
        case doc.Headlines():
            for number, each in enumerate(block.headlines):
                yield from [""] * bool(number)
                yield f"**{within(each.words)}**: {within(each.sentence.rstrip('.'))}."
            yield from _below_headlines(block)
        case doc.Counts():
            yield " · ".join(f"**{within(words)}**" for _, words in block.counts)
            yield from ("", *(f"- {without_markup(sentence)}" for sentence in block.sentences))
        case doc.Callout():
            fix = [f"→ {block.fix}"] if block.fix else []
            yield f"- **{within(block.name)}**: {within(' '.join([*block.lines, *fix]))}"
        case doc.Paragraph():
            yield without_markup(f"{block.label}: {block.text}" if block.label else block.text)
        case doc.FactList():
            yield from (f"{without_markup(term)}: {within(said)}  " for term, said in block.facts)
        case doc.Table():
            yield from _table(block, corner)
        case doc.Section():
            yield from _section(block)


def _below_headlines(block: doc.Headlines) -> Iterator[str]:
    """Write what the verdicts leave open, a line each."""
    further = [line for each in block.headlines for line in each.further]
    facts = [f"{term}: {said}" for each in block.headlines for term, said in each.facts]
    for line in (*further, *facts):
        yield from ("", within(line))


def _section(section: doc.Section) -> Iterator[str]:
    """Write what belongs under a heading; that of a single table is its corner."""
    if len(section.blocks) == 1 and isinstance(section.blocks[0], doc.Table):
        yield from _table(section.blocks[0], section.heading)
        return
    yield f"**{within(section.heading)}**"
    for block in section.blocks:
        yield from ("", *_lines(block))


def _table(table: doc.Table, corner: str) -> Iterator[str]:
    """Write a table; headings of groups have a column of their own."""
    names = [
        corner or ("" if each.obvious else each.heading) if each.kind == "name" else each.heading
        for each in table.columns
    ]
    headed = any(group.heading for group in table.groups)
    rows = (
        [*([group.heading * (number == 0)] if headed else []), *map(_written, table.columns, line)]
        for group in table.groups
        for number, line in enumerate(group.lines())
    )
    yield from table_lines([*([""] if headed else []), *names], rows)


def _written(column: doc.Column, cell: doc.Cell) -> str:
    below = f" ({column.below} {cell.below})" if column.below and not column.spare else ""
    return cell.text + below if cell.below else cell.text


def table_lines(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Write a table of texts."""
    heads = list(headings)
    yield _row(heads)
    yield f"| {' | '.join(['---'] * len(heads))} |"
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(within, cells))} |"
