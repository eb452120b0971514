"""Writes docs/reference/cli.md: what `webdyno COMMAND --help-all` prints, each flag once.

    .venv/bin/python docs/make_cli.py

A test runs it and finds nothing to change.
"""

import re
import textwrap
from pathlib import Path

from webdyno.cli import app
from webdyno.cli.help import WIDTH, help_page
from webdyno.model.command import COMMANDS_FOR

DOCUMENT = Path(__file__).parent / "reference/cli.md"
BEGINNING = """# Command line

What `webdyno COMMAND --help-all` prints. Flags that mean the same as in `compare` are only named
again. Exit codes: [one table](exit-codes.md). (`docs/make_cli.py` makes this page.)
"""
FIRST = "compare"
"""The command whose flags are described in full."""
ENTRY = re.compile(r"^  \S.*(?:\n {3,}.*)*", re.MULTILINE)
"""A flag or an argument with its description."""
FLAG = re.compile(r"--[\w\[\]-]+")


def written() -> str:
    """The page as the commands are now."""
    shared = set(ENTRY.findall(_help(FIRST)))
    parts = [BEGINNING]
    for group, commands in COMMANDS_FOR.items():
        parts.append(f"## {group}\n")
        for name in commands:
            text = _help(name)
            shown = text if name == FIRST else _without(shared, text)
            parts.append(f"### {name}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


def _help(name: str) -> str:
    return help_page(app(), name, everything=True).strip("\n")


def _without(shared: set[str], text: str) -> str:
    """Give a help page in which the shared flags are only named, at its end."""
    entries = ENTRY.findall(text)
    again = [FLAG.findall(it)[0] for it in entries if it in shared]
    sections = []
    for section in text.split("\n\n"):
        own = [it for it in ENTRY.findall(section) if it not in shared]
        if own or not ENTRY.search(section):
            sections.append("\n".join([ENTRY.sub("", section).strip("\n"), *own]))
    if again:
        named = textwrap.fill(
            ", ".join(again),
            WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        sections.append(f"As in {FIRST}\n{named}")
    return "\n\n".join(sections)


if __name__ == "__main__":
    DOCUMENT.write_text(written(), encoding="utf-8")
