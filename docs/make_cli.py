"""Writes docs/reference/cli.md: what `webdyno COMMAND --help-all` prints, each flag once.

    .venv/bin/python docs/make_cli.py

A test runs it and finds nothing to change.
"""

import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from webdyno.core.registry import commands
from webdyno.interfaces.cli import app
from webdyno.interfaces.cli.help import WIDTH, help_page

DOCUMENT = Path(__file__).parent / "reference/cli.md"
BEGINNING = """# Command line

What `webdyno COMMAND --help-all` prints; `…`: may be given again. Flags that mean the same as in
`compare` are only named again, one by one or as a group. [Exit codes](exit-codes.md).

All commands take `--debug FILE`: [when nothing happens](../how-to/troubleshoot.md#nothing-happens).
"""
FIRST = "compare"
"""The command whose flags are described in full."""
ENTRY = re.compile(r"^  \S.*(?:\n {3,}.*)*", re.MULTILINE)
"""A flag or an argument with its description."""
FLAG = re.compile(r"--[\w\[\]-]+")


def written() -> str:
    """The page as the commands are now."""
    first = _help(FIRST)
    parts = [BEGINNING]
    for group, members in groupby(commands().values(), key=attrgetter("wanted")):
        parts.append(f"## {group}\n")
        for name, *_ in members:
            text = first if name == FIRST else _without(first, _help(name))
            parts.append(f"### {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def _help(name: str) -> str:
    page = help_page(app(), name, everything=True).strip("\n")
    page = page.replace("   (…: may be given again)", "")
    page = re.sub(rf"^Usage: webdyno ({name} .*) \[FLAGS\]$", r"\1", page, flags=re.MULTILINE)
    return re.sub(rf"\n\nUsage: webdyno {name} \[FLAGS\]", "", page)


def _without(first: str, text: str) -> str:
    """Give a help page in which flags of the first one are only named, whole groups by name."""
    shared = {it for it in ENTRY.findall(first) if FLAG.search(it)}
    shared &= set(ENTRY.findall(text))
    kept = []
    for section in text.split("\n\n"):
        own = [it for it in ENTRY.findall(section) if it not in shared]
        if own or not ENTRY.search(section):
            kept.append("\n".join([ENTRY.sub("", section).strip("\n"), *own]))
    if shared:
        named = ", ".join(_named(first, shared))
        kept.append(
            f"As in {FIRST}\n"
            + textwrap.fill(
                named, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
        )
    return "\n\n".join(kept)


def _named(first: str, shared: set[str]) -> Iterator[str]:
    """Name the shared flags: a group of which all are shared by its title."""
    for section in first.split("\n\n"):
        entries = [it for it in ENTRY.findall(section) if FLAG.search(it)]
        again = [it for it in entries if it in shared]
        if len(again) > 1 and again == entries:
            yield section.partition(chr(10))[0]
        else:
            yield from (FLAG.findall(it)[0] for it in again)


if __name__ == "__main__":
    DOCUMENT.write_text(written(), encoding="utf-8")
