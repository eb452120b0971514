"""Documents as pages: one file that holds everything and asks the network for nothing.

Of a run, notebooks show a few lines of HTML. All that others wrote is escaped.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, groupby

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from webdyno.core import format as text
from webdyno.core.text import make_printable, printable
from webdyno.media.document import Block, Counts, Document, Headlines, Section
from webdyno.media.drawing import DARK, FONT, LIGHT, Mark, marks

CODE = re.compile(
    r"`(?P<command>[^`]*)`|(?<![\w-])(?P<flag>--[a-z][\w-]*(?: [\w.]+=[\w.]*\w)?|-c \d+)"
)
OPTION = re.compile(r"(?<!\S)--?[a-z][\w-]*")
"""In a command: no line ends within it."""
OF_ALL = "webdyno.media"
"""Whose templates all pages have."""
NARROW_SPACE = "\u202f"
MOST_ROWS = 60
"""In a notebook."""
MOST_AT_ONCE = 5
"""Variants whose curves differ enough; of more of them a page shows those that are ticked."""


def html(
    document: Document,
    *,
    brand: str,
    version: str,
    title: str = "",
    made: str = "",
    made_from: str = "",
    variants: Iterable[str] = (),
    ends_with: str = "",
) -> str:
    """Return the page of a document.

    `title` is the window's, if not the document's; `made` says when, `made_from` of what. Each of
    the `variants` has a colour of its own. `ends_with` is a template for the last section.
    """
    known = marks(variants)
    anchors = [
        block.anchor for block in document.blocks if isinstance(block, Section) and block.anchor
    ]
    return (
        templates_of()
        .get_template("document.html")
        .render(
            document=document,
            drawn=draw_blocks(document.blocks, known),
            anchors=anchors,
            brand=brand,
            version=version,
            title=title or document.title,
            made=made,
            made_from=made_from,
            marks=known,
            ends_with=ends_with,
        )
    )


def draw_blocks(blocks: Iterable[Block], known: Sequence[Mark] = ()) -> Markup:
    """Draw blocks for a page that has the style sheet; what is between sections becomes one."""

    def draw(block: Block) -> Markup:
        made: Markup = getattr(macros, type(block).__name__)(block)
        return made

    macros = templates_of().get_template("blocks.html").make_module({"marks": known, "draw": draw})
    together = groupby(blocks, key=lambda block: isinstance(block, Section | Headlines | Counts))
    parts = (its if is_card else [Section("", list(its))] for is_card, its in together)
    return Markup("\n").join(map(draw, chain.from_iterable(parts)))


def style_sheet() -> str:
    """Return the style sheet of all pages, for one that doesn't hold it itself."""
    return templates_of().get_template("style.css").render(marks=[])


@cache
def templates_of(package: str = OF_ALL) -> Environment:
    """Return a package's templates of pages, in which texts are texts and no markup."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(OF_ALL)]),
        autoescape=True,
        finalize=make_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"light": LIGHT, "dark": DARK, "font": FONT}
    environment.globals["most_at_once"] = MOST_AT_ONCE
    environment.filters["prose"] = prose
    return environment


def make_again(with_command: str) -> str:
    """Return what follows the fault of a file: nothing is lost, and what makes it again."""
    return f". What was measured is safe; once that is fixed, `{with_command}` makes it again."


def prose(said: str) -> Markup:
    """Typeset a sentence: commands and flags as code, no line's end between a number and unit."""

    def code(match: re.Match[str]) -> str:
        said = match["flag"] or match["command"]
        return f"<code>{OPTION.sub(_in_one_line, said)}</code>"

    spaced = str(escape(text.bound(printable(said), NARROW_SPACE)))
    return Markup(CODE.sub(code, spaced))  # noqa: S704 (escaped before)


def _in_one_line(option: re.Match[str]) -> str:
    return f'<span class="flag">{option[0]}</span>'


def answer_html(headline: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Show a sentence above a table."""
    return Markup("<p><b>{}</b></p>{}").format(headline, Markup(table_html(rows)))  # noqa: S704


def table_html(rows: Sequence[Mapping[str, object]]) -> str:
    """Show rows that have the same keys; of very many only the first."""
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(key)}</th>" for key in rows[0])
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(value))}</td>' for value in row.values())}</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = f"<p>{len(rows) - MOST_ROWS:,} more rows</p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{more}"


def _shown(value: object) -> str:
    if value is None:
        return text.MISSING
    return text.significant(value) if isinstance(value, float) else str(value)
