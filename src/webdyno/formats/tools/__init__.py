"""What is known of load generators' outputs, a file for each family of tools.

A tool is added by its `Tool` in any file here, with everything that its text, its JSON and its
command line say, or by a package that is installed next to webdyno.
"""

import pkgutil
import re
from functools import cache
from importlib import import_module

from webdyno.core.format import listed
from webdyno.core.registry import AUDIT_FORMATS, load_extensions
from webdyno.formats.facts import Tool

ALIKE = ("autobench", "wrk2")
"""Read although no tool has the name: a sheet of httperf's runs, and what prints as wrk does."""


@cache
def tools() -> tuple[Tool, ...]:
    """Return all of them, webdyno's own first."""
    ours = (
        value
        for each in pkgutil.iter_modules(__path__)
        for value in vars(import_module(f"{__name__}.{each.name}")).values()
        if isinstance(value, Tool)
    )
    return (*ours, *(each.value for each in load_extensions(AUDIT_FORMATS, Tool)))


def readable() -> str:
    """Return the names of all whose output is read."""
    names = {*ALIKE, *(tool.title or tool.name for tool in tools())}
    return listed(sorted(names, key=str.lower))


@cache
def _openings() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<tool{n}>{tool.opening})" for n, tool in enumerate(tools())))


def opened_by(text: str) -> Tool | None:
    """Return the tool that begins an output with such a line."""
    match = _openings().match(text)
    if not match or not match.lastgroup:
        return None
    return tools()[int(match.lastgroup.removeprefix("tool"))]


def after_all(tool: Tool, text: str) -> Tool:
    """Return the tool that an output is of, now that this line follows an opening of two tools."""
    for other in tools():
        if other.looks_like == tool.name and re.match(other.sure_by, text):
            return other
    return tool
