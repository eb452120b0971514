"""Writes directives of nginx, so that nginx reads what was read."""

import re
from collections.abc import Iterator

import crossplane
from crossplane.builder import EXTERNAL_BUILDERS

from webdyno.core.service import Line
from webdyno.systems.conf.nginx_read import Directive

INDENT = "    "
_PLAIN = re.compile(r"(?!#)(?:\\\S|\$\{\w+\}|[^\s{};\"'\\])+(?<!\$)")
"""A word that needs no quotes."""


def lines_of(directives: list[Directive], depth: int = 0) -> Iterator[Line]:
    """Return the lines of directives, each with where it comes from."""
    margin = INDENT * depth
    for directive in directives:
        end = ";" if directive.block is None else " {"
        text = f"{margin}{_head(directive)}{end}"
        if directive.name in EXTERNAL_BUILDERS:  # code
            plain = {"directive": directive.name, "args": directive.args}
            text = margin + crossplane.build([plain])
        yield from (Line(part, directive.origin) for part in text.split("\n"))
        if directive.block is not None:
            yield from lines_of(directive.block, depth + 1)
            yield Line(margin + "}", directive.origin)


def _head(directive: Directive) -> str:
    words = " ".join(map(_quoted, directive.args))
    return (
        f"if ({words})" if directive.name == "if" else f"{_quoted(directive.name)} {words}".strip()
    )


def _quoted(word: str) -> str:
    """Return a word in quotes if it needs them, which no quotation mark in it ends."""
    if _PLAIN.fullmatch(word):
        return word
    quote = '"' if "'" in word and '"' not in word else "'"
    # What a backslash is before stays as it is.
    inner = re.sub(rf"(?s)(\\.)|[{quote}\\]", lambda match: match[1] or f"\\{match[0]}", word)
    return f"{quote}{inner}{quote}"
