"""Extras of webdyno: packages of Python that few need, installed where they are asked for."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib import invalidate_caches
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path

from webdyno.core.errors import OperationError, lacks_package
from webdyno.core.format import last_lines, listed
from webdyno.host.children import python_module, run_program
from webdyno.launch.caller import Caller

OF_EXTRA = re.compile(r"(?P<requirement>[^;]+?)\s*;.*\bextra == ['\"](?P<extra>[\w-]+)['\"]")
NAME = re.compile(r"[\w.-]+")
UV_OF_CHECKOUT = Path(__file__).resolve().parents[3] / ".dyno/uv/bin/uv"
"""As ./dyno put it next to the code that runs; next to an environment it may be anybody's."""
SHOWN_LINES = 5


def provide_extra(extra: str, purpose: str, caller: Caller) -> None:
    """Install what an extra lacks, after one question; raise OperationError where it still does."""
    lacking = list(_lacking(extra))
    if not lacking:
        return
    names = listed(_name(requirement) for requirement in lacking)
    command = _installing(lacking)
    if command is None:
        raise lacks_package(f"{purpose} takes", shlex.join(lacking))
    question = f"{purpose} takes {names}: install by {Path(command[0]).name}?"
    if caller.yes:
        caller.notify(f"{question} {caller.spelled('--yes')} agreed to that …")
    elif not caller.ask(question, usual=True):
        raise OperationError(
            f"{purpose} takes {names}; nothing was installed. Add {caller.spelled('--yes')} to "
            f"have that done, or run\n    {shlex.join(command)}"
        )
    done = run_program(command, within_s=None)
    invalidate_caches()
    if done.returncode or list(_lacking(extra)):
        end = last_lines(done.stdout + done.stderr, SHOWN_LINES)
        raise OperationError(f"{names} could not be installed:\n{end}")


def _lacking(extra: str) -> Iterator[str]:
    """Yield what the extra requires and isn't there."""
    for written in requires("webdyno") or []:
        match = OF_EXTRA.match(written)
        if match and match["extra"] == extra:
            try:
                distribution(_name(match["requirement"]))
            except PackageNotFoundError:
                yield match["requirement"]


def _name(requirement: str) -> str:
    match = NAME.match(requirement)
    return match[0] if match else requirement


def _installing(requirements: Sequence[str]) -> list[str] | None:
    """Return the command that installs packages where this Python finds them."""
    if find_spec("pip"):
        return [*python_module("pip"), "install", *requirements]
    uv = str(UV_OF_CHECKOUT) if UV_OF_CHECKOUT.exists() else shutil.which("uv")
    if uv is None:
        return None
    # It takes settings, such as where packages come from, from the current folder and those above:
    # also where the command is pasted.
    return [uv, "pip", "install", "--directory=/", "--python", sys.prefix, *requirements]
