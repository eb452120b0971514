"""Commands of webdyno as people can paste them into their shell, and their flags."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from webdyno.core.registry import ALSO, MEASURE, PREPARE, READ, CommandParts, question_commands

NAME = "webdyno"
DEBUG = "--debug"
"""The flag that all commands have."""

_API = "webdyno.interfaces.python.api"
_OTHERS = (
    CommandParts(
        "run",
        MEASURE,
        "Run an experiment from its file or the catalog, or repeat a study.",
        "webdyno.interfaces.cli.run:run",
        (f"{_API}:run_experiment",),
    ),
    CommandParts(
        "report",
        READ,
        "Judge runs again and write reports; nothing is measured.",
        "webdyno.interfaces.cli.report:report",
        tool="webdyno.interfaces.mcp:report",
    ),
    CommandParts(
        "diff",
        READ,
        "Show what changed between two runs of the same experiment; nothing is measured.",
        "webdyno.interfaces.cli.report:diff",
    ),
    CommandParts(
        "resume",
        READ,
        "Continue a run after Ctrl-C, a crash or a full disk.",
        "webdyno.interfaces.cli.run:resume",
        (f"{_API}:resume",),
    ),
    CommandParts(
        "ui",
        READ,
        "Show the runs of a folder on a local web page.",
        "webdyno.interfaces.cli.serving:ui",
    ),
    CommandParts(
        "init",
        PREPARE,
        "Write a webdyno.toml that says how the application in a folder starts.",
        "webdyno.interfaces.cli.init:init",
    ),
    CommandParts(
        "traffic",
        PREPARE,
        "Make a load of the traffic in an access log or HAR file.",
        "webdyno.interfaces.cli.traffic:traffic",
    ),
    CommandParts(
        "list",
        PREPARE,
        "List stacks, sites, experiments or studies; or show a stack with its settings.",
        "webdyno.interfaces.cli.listing:list_known",
    ),
    CommandParts(
        "doctor",
        PREPARE,
        "Look at this machine: cores, limits, packages, and what they mean for results.",
        "webdyno.interfaces.cli.doctor:doctor",
    ),
    CommandParts(
        "cluster",
        PREPARE,
        "Start, check and stop a Ray cluster of load and server hosts.",
        "webdyno.interfaces.cli.cluster:cluster",
    ),
    CommandParts(
        "up",
        ALSO,
        "Start one system, print its URL, and keep it up until Ctrl-C.",
        "webdyno.interfaces.cli.serving:up",
    ),
    CommandParts(
        "load",
        ALSO,
        "Put load on a URL and print what was measured.",
        "webdyno.interfaces.cli.load:load",
    ),
    CommandParts(
        "audit",
        ALSO,
        "Find what can't be believed in a benchmark's output, and why.",
        "webdyno.interfaces.cli.audit:audit",
    ),
    CommandParts(
        "mcp",
        ALSO,
        "Offer compare, gate, capacity, explain and report as tools to an agent.",
        "webdyno.interfaces.cli.serving:mcp",
    ),
)
"""Commands that ask no question of their own."""


def commands() -> dict[str, CommandParts]:
    """Return all commands by name, as their list shows them: by what people want."""
    all_of_them = (*question_commands(), *_OTHERS)
    return {
        each.name: each
        for wanted in (MEASURE, READ, PREPARE, ALSO)
        for each in all_of_them
        if each.wanted == wanted
    }


def python_calls() -> dict[str, str]:
    """Return the functions of the Python API that are a command's, by name, as `module:name`."""
    return {call.partition(":")[2]: call for each in commands().values() for call in each.calls}


def command(*words: str | Path) -> str:
    """Give a command line of webdyno, quoted where a shell needs it."""
    return shlex.join([called_as(), *map(str, words)])


def as_called(text: str) -> str:
    """Give a text with its commands of webdyno as they can be called from here.

    For what is printed; what is stored says `webdyno`, wherever it will be read.
    """
    called, names = shlex.quote(called_as()), "|".join(commands())
    return re.sub(rf"(?<![\w./-]){NAME}(?= (?:{names})\b)", lambda _: called, text)


def keyword_of(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def spelled(flag: str, value: object = True, *, by_keyword: bool) -> str:
    """Spell a flag with its value, or the keyword of Python in its place."""
    if by_keyword:
        return f"{keyword_of(flag)}={value!r}"
    return flag if value is True else f"{flag} {value}"


def called_as() -> str:
    """Give the name by which this webdyno can be called again from the same folder.

    `./dyno` reports it in WEBDYNO_CALLED_AS. Else it is the plain name where the PATH leads to it,
    or the path by which it was called.
    """
    if name := os.environ.get("WEBDYNO_CALLED_AS"):
        return name
    called = sys.argv[0]
    return called if Path(called).name == NAME and shutil.which(NAME) is None else NAME
