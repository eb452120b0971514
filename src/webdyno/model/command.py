"""Commands of webdyno as people can paste them into their shell, and their flags."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

NAME = "webdyno"
DEBUG = "--debug"
"""The flag that all commands have."""
COMMANDS_FOR = {
    "Compare and measure": {
        "compare": "Compare systems under the same load: a verdict for two, ranks for more.",
        "capacity": "Find the highest load that systems carry while objectives hold.",
        "tune": "Find better settings with equal effort, then compare default and tuned.",
        "run": "Run an experiment from its file or the catalog, or repeat a study.",
        "gate": "Fail if HEAD is slower than BASE by more than a limit.",
    },
    "Read results": {
        "explain": "Find the bottleneck of a run: measure each system again with less of one "
        "resource.",
        "report": "Judge runs again and write reports; nothing is measured.",
        "diff": "Show what changed between two runs of the same experiment; nothing is measured.",
        "resume": "Continue a run after Ctrl-C, a crash or a full disk.",
        "ui": "Show the runs of a folder on a local web page.",
    },
    "Prepare": {
        "init": "Write a webdyno.toml that says how the application in a folder starts.",
        "traffic": "Make a load of the traffic in an access log or HAR file.",
        "list": "List stacks, sites, experiments or studies; or show a stack with its settings.",
        "doctor": "Look at this machine: cores, limits, packages, and what they mean for results.",
        "cluster": "Start, check and stop a Ray cluster of load and server hosts.",
    },
    "Also": {
        "up": "Start one system, print its URL, and keep it up until Ctrl-C.",
        "load": "Put load on a URL and print what was measured.",
        "audit": "Find what can't be believed in a benchmark's output, and why.",
        "mcp": "Offer compare, gate, capacity, explain and report as tools to an agent.",
    },
}
"""By what people want, each with what it does: what the list of commands shows, which imports none
of them."""
COMMANDS = tuple(name for names in COMMANDS_FOR.values() for name in names)
COMMAND_IN_TEXT = re.compile(rf"(?<![\w./-]){NAME}(?= (?:{'|'.join(COMMANDS)})\b)")
"""Where a text tells one of webdyno's commands."""


def command(*words: str | Path) -> str:
    """Give a command line of webdyno, quoted where a shell needs it."""
    return shlex.join([called_as(), *map(str, words)])


def as_called(text: str) -> str:
    """Give a text with its commands of webdyno as they can be called from here.

    For what is printed; what is stored says `webdyno`, wherever it will be read.
    """
    called = shlex.quote(called_as())
    return COMMAND_IN_TEXT.sub(lambda _: called, text)


def keyword_of(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def spelled(flag: str, value: object = True, *, by_keyword: bool) -> str:
    """Spell a flag with its value, or the keyword of Python in its place."""
    if by_keyword:
        return f"{keyword_of(flag)}={value!r}"
    return flag if value is True else f"{flag} {value}"


def called_as() -> str:
    """Give the name by which this webdyno can be called again from the same folder.

    `./dyno` tells it in WEBDYNO_CALLED_AS. Else it is the plain name where the PATH leads to it, or
    the path by which it was called.
    """
    if name := os.environ.get("WEBDYNO_CALLED_AS"):
        return name
    called = sys.argv[0]
    return called if Path(called).name == NAME and shutil.which(NAME) is None else NAME
