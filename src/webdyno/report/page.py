"""Documents as pages: one file that holds everything and asks the network for nothing."""

import re
from collections.abc import Iterable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from webdyno.model import format as text
from webdyno.model.text import finished
from webdyno.report.document import Block, Document, Section
from webdyno.report.drawing import DARK, FONT, LIGHT, marks

CODE = re.compile(r"`(?P<command>[^`]*)`|(?<![\w-])(?P<flag>--[a-z][\w-]*(?: [\w.]+=[\w.]*\w)?)")
NARROW_SPACE = "\u202f"


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
    """Give the page of a document.

    `title` is the window's, if not the document's; `made` says when, `made_from` of what. Each of
    the `variants` has a colour of its own. `ends_with` is a template for the last section.
    """
    known = marks(variants)
    blocks = _templates().get_template("blocks.html")

    def draw(block: Block) -> Markup:
        drawn: Markup = getattr(macros, type(block).__name__)(block)
        return drawn

    anchors = [it.anchor for it in document.blocks if isinstance(it, Section) and it.anchor]
    macros = blocks.make_module({"marks": known, "draw": draw})
    return (
        _templates()
        .get_template("document.html")
        .render(
            document=document,
            draw=draw,
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


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("webdyno.report"),
        autoescape=True,
        finalize=finished,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"light": LIGHT, "dark": DARK, "font": FONT}
    environment.filters["prose"] = prose
    return environment


def make_again(with_command: str) -> str:
    """Say after what went wrong with a file that nothing is lost, and what makes it again."""
    return f". What was measured is safe; once that is fixed, `{with_command}` makes it again."


def prose(said: str) -> Markup:
    """Typeset a sentence: commands and flags as code, no line's end between a number and unit."""

    def code(found: re.Match[str]) -> str:
        flag = found["flag"]
        return f'<code class="flag">{flag}</code>' if flag else f"<code>{found['command']}</code>"

    spaced = str(escape(text.bound(said, NARROW_SPACE)))
    return Markup(CODE.sub(code, spaced))  # noqa: S704 (escaped before)
