"""Writes docs/reference/cli.md: what `webdyno COMMAND --help-all` prints.

    .venv/bin/python docs/make_cli.py

A test runs it and finds nothing to change.
"""

from pathlib import Path

from webdyno.cli import app
from webdyno.cli.help import help_page
from webdyno.model.command import COMMANDS_FOR

DOCUMENT = Path(__file__).parent / "reference/cli.md"
BEGINNING = """# Command line

`webdyno COMMAND --help` prints the first page of each command, and `--help-all` prints what stands
here. Exit codes have [a page of their own](exit-codes.md). (This page is made from the commands by
`docs/make_cli.py`; a test keeps it so.)
"""


def written() -> str:
    """The page as the commands are now."""
    parts = [BEGINNING]
    for group, commands in COMMANDS_FOR.items():
        parts.append(f"## {group}\n")
        for name, does in commands.items():
            text = help_page(app(), name, everything=True).strip("\n")
            parts.append(f"### {name}\n\n{does}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(written(), encoding="utf-8")
