"""Commands of webdyno as people can paste them into their shell."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from webdyno.model.run import CATALOGUE_FOLDER, EXPERIMENT_FILE, RunHead

NAME = "webdyno"
COMMANDS = (
    "audit",
    "calibrate",
    "compare",
    "doctor",
    "duel",
    "export",
    "gate",
    "init",
    "load",
    "report",
    "resume",
    "run",
    "setup",
    "stacks",
    "studies",
    "up",
    "workload",
)
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


def repeat_command(folder: Path, head: RunHead) -> str:
    """Give the command that repeats a run from its folder alone, at all of its points."""
    every_level = ["--full"] if head.experiment.factors else []
    catalogue = ("--catalog", folder / CATALOGUE_FOLDER)
    return command("run", folder / EXPERIMENT_FILE, *catalogue, *every_level)


def called_as() -> str:
    """Give the name by which this webdyno can be called again from the same folder.

    `./dyno` tells it in WEBDYNO_CALLED_AS. Else it is the plain name where the PATH leads to it, or
    the path by which it was called.
    """
    if told := os.environ.get("WEBDYNO_CALLED_AS"):
        return told
    called = sys.argv[0]
    return called if Path(called).name == NAME and shutil.which(NAME) is None else NAME
