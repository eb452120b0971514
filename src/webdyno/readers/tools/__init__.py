"""What is known of load generators' outputs: a file for each tool, or for tools that print alike.

A tool is added by a file here that has its `Tool`, with everything that its text and JSON say.
"""

import pkgutil
import re
from importlib import import_module

from webdyno.readers.facts import Tool

TOOLS: tuple[Tool, ...] = tuple(
    value
    for each in pkgutil.iter_modules(__path__)
    for value in vars(import_module(f"{__name__}.{each.name}")).values()
    if isinstance(value, Tool)
)

READABLE = (
    "ab, autobench, autocannon, bombardier, Gatling, ghz, h2load, hey, httperf, JMeter, k6, "
    "Locust, oha, plow, redis-benchmark, rewrk, siege, vegeta, wrk, wrk2 and zrk"
)
"""All of them in words."""

_OPENINGS = re.compile("|".join(f"(?P<tool{n}>{tool.opening})" for n, tool in enumerate(TOOLS)))

_SURE = {(tool.looks_like, tool): re.compile(tool.sure_by) for tool in TOOLS if tool.looks_like}


def opened_by(text: str) -> Tool | None:
    """Give the tool that begins an output with such a line."""
    found = _OPENINGS.match(text)
    if not found or not found.lastgroup:
        return None
    return TOOLS[int(found.lastgroup.removeprefix("tool"))]


def after_all(tool: Tool, text: str) -> Tool:
    """Give the tool that an output is of, now that this line follows what two tools begin with."""
    for (looks_like, other), sure_by in _SURE.items():
        if looks_like == tool.name and sure_by.match(text):
            return other
    return tool
