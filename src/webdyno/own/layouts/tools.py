"""Whether the programs that an application is built and started with are on this machine."""

import re
import shutil
from collections.abc import Iterator

from webdyno.own.layouts.found import FoundApp

BETWEEN = re.compile(r"&&|\|\||[;|]")
ASSIGNMENT = re.compile(r"\w+=(?:\$\(\([^)]*\)\)|\$\([^)]*\)|\S*)\s+")
LEADING = {"exec", "env"}
"""Words before the program."""
OF_SHELL = {"cd", "export", "test", "true", ":", "["}


def missing_tools(app: FoundApp) -> list[str]:
    """Name the programs that aren't here; those of the application's own folder are made."""
    lines = filter(None, (app.build, app.setup, app.prepare, app.start))
    named = dict.fromkeys(program for line in lines for program in _programs(line))
    if app.image:
        named["podman"] = None
    return [program for program in named if "/" not in program and not shutil.which(program)]


def _programs(line: str) -> Iterator[str]:
    """Give the programs that a line of shell calls."""
    for part in BETWEEN.split(line):
        words = ASSIGNMENT.sub("", part.strip()).split()
        while words and words[0] in LEADING:
            words = ASSIGNMENT.sub("", " ".join(words[1:])).split()
        if words and words[0] not in OF_SHELL:
            yield words[0]
