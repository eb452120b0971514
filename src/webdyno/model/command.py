"""Commands of webdyno as people can paste them into their shell."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

NAME = "webdyno"
COMMANDS_FOR = {
    "Which is faster": {
        "run": "Run an experiment: start its stacks, load them in turns, judge, and write a "
        "report.",
        "duel": "Compare two stacks: both serve the same site under the same load, and take turns.",
        "league": "Rank stacks: each against every other, with the ranks that are sure.",
        "gate": "Tell whether head is worse than the baseline by more than is tolerated.",
    },
    "How much can it take, how fast can it be": {
        "capacity": "Find the highest load that one or two stacks carry while objectives hold.",
        "tune": "Look for better settings of one or two stacks, then compare default and tuned "
        "again.",
    },
    "Your own": {
        "init": "Look at a folder and write a webdyno.toml that says how its application starts.",
        "workload": "Make a load of the traffic in a log, and say how well the two agree.",
        "up": "Start one stack, print its URL, and keep it up until Ctrl-C.",
    },
    "What others measured": {
        "audit": "Say what can't be believed about a benchmark, why, and how to measure it "
        "instead.",
        "studies": "List the studies, or repeat some and judge their claims.",
    },
    "What was measured": {
        "report": "Judge a run again and write its report again; nothing is measured.",
        "compare": "Say what changed between two runs of the same experiment; nothing is measured.",
        "fleet": "Say how far a verdict carries: runs of several machines, judged together.",
        "export": "Write a run's slots as one Parquet table: a row for each slot, warm-ups "
        "included.",
        "serve": "Show the runs of a folder on a local page: live, compared, exported; begin duels "
        "from it.",
        "resume": "Go on with a run after Ctrl-C, a crash or a full disk; finished rounds aren't "
        "repeated.",
    },
    "Why is it so": {
        "why": "Find what limits the variants of a run: each is measured again with one "
        "thing changed.",
    },
    "This machine": {
        "doctor": "Look at this machine: cores, limits, packages, and what they mean for results.",
        "setup": "Install the packages that stacks, and all sites they can serve, need.",
        "stacks": "List all stacks, or show one with its settings and the sites that it can serve.",
        "calibrate": "Measure what this client can do at most against a server that does nothing, "
        "and the noise.",
        "cluster": "Start, look at and stop a Ray cluster: its hosts, and what lies between them.",
        "completion": "Print what lets a shell complete commands and flags.",
        "load": "Put load on a URL; flags are the engine's, see `webdyno load --help`.",
    },
}
"""By what people want, each with what it does: what the list of commands shows, which imports none
of them."""
COMMANDS = tuple(name for names in COMMANDS_FOR.values() for name in names)
TOLD = re.compile(rf"(?<![\w./-]){NAME}(?= (?:{'|'.join(COMMANDS)})\b)")
"""Where a text tells one of webdyno's commands."""


def command(*words: str | Path) -> str:
    """Give a command line of webdyno, quoted where a shell needs it."""
    return shlex.join([called_as(), *map(str, words)])


def as_called(text: str) -> str:
    """Give a text with its commands of webdyno as they can be called from here.

    For what is printed; what is stored says `webdyno`, wherever it will be read.
    """
    called = shlex.quote(called_as())
    return TOLD.sub(lambda _: called, text)


def called_as() -> str:
    """Give the name by which this webdyno can be called again from the same folder.

    `./dyno` tells it in WEBDYNO_CALLED_AS. Else it is the plain name where the PATH leads to it, or
    the path by which it was called.
    """
    if name := os.environ.get("WEBDYNO_CALLED_AS"):
        return name
    called = sys.argv[0]
    return called if Path(called).name == NAME and shutil.which(NAME) is None else NAME
