"""The shortest names that distinguish systems: `gunicorn` and `uvicorn`, `main` and `v1.2`."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.text import split_url

LONGEST_NAME = 48
"""Letters; a longer one would push the figures off each line of the report."""
NAMED = re.compile(r"(?P<name>[^\s:=/][^:=/]*)=(?P<system>\S.*)", re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
STARTERS = {"exec", "env", "nice", "bundle", "run", "sudo", "time", "uv", "poetry", "pipenv", "npx"}
"""Words before the program that a command is about."""
INTERPRETERS = re.compile(r"(python|ruby|node|php|perl|java|deno|bun|bash|sh)[\d.]*")
TAKING_THE_PROGRAM = {"-m", "-jar"}
"""Flags of interpreters whose value names the program."""


class NamedSystem(NamedTuple):
    """A system as it was asked for: `NAME=SYSTEM`, or a system alone."""

    name: str
    """Empty where it was given none."""
    system: str

    @classmethod
    def of(cls, text: str) -> "NamedSystem":
        """Take a name and a system apart; the name is empty where there is none."""
        match = NAMED.fullmatch(text)
        return cls(match["name"].strip(), match["system"]) if match else cls("", text)


def variant_names(systems: Sequence[NamedSystem]) -> list[str]:
    """Give each system its own name, or the shortest one that no other has.

    Systems that are the same, or too much alike, are distinguished by letters: `nginx (A)`. Raise
    UserError where two were given one name.
    """
    given = [system.name for system in systems if system.name]
    for name in given:
        if given.count(name) > 1:
            raise UserError(f"{name}={systems[-1].system}: {name} is the name of another one")
    ways = [_ways(system, [other.system for other in systems]) for system in systems]
    chosen = [0] * len(systems)
    while crowded := [
        place for place in _alike(ways, chosen) if chosen[place] + 1 < len(ways[place])
    ]:
        for place in crowded:
            chosen[place] += 1
    alike = set(_alike(ways, chosen))
    names = [ways[place][0 if place in alike else way] for place, way in enumerate(chosen)]
    return [
        f"{name} ({chr(ord('A') + names[:place].count(name))})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _alike(ways: Sequence[Sequence[str]], chosen: Sequence[int]) -> list[int]:
    names = [each[way] for each, way in zip(ways, chosen, strict=True)]
    return [place for place, name in enumerate(names) if names.count(name) > 1]


def _ways(asked: NamedSystem, systems: Sequence[str]) -> list[str]:
    """Give what a system may be called, the shortest first."""
    if asked.name:
        return [asked.name]
    kind, colon, text = asked.system.partition(":")
    text = " ".join(text.split())
    of_kind = {
        "rev": _of_revision,
        "conf": _of_file,
        "image": _of_image,
        "url": _of_url,
    }
    if not colon:
        return [asked.system]
    if kind == "cmd":
        others = [system.partition(":")[2] for system in systems if system.startswith("cmd:")]
        names = _of_command(text, others)
    elif kind in of_kind:
        names = of_kind[kind](text)
    else:
        names = iter([asked.system])
    short = [name for name in names if 0 < len(name) <= LONGEST_NAME]
    return list(dict.fromkeys(short)) or [kind]


def _of_revision(text: str) -> Iterator[str]:
    yield "working tree" if text == "." else text[:LONGEST_NAME]


def _of_file(text: str) -> Iterator[str]:
    parts = PurePath(text.rpartition(":")[2]).parts
    for first in range(len(parts) - 1, -1, -1):
        yield "/".join(parts[first:])
    yield text


def _of_image(text: str) -> Iterator[str]:
    if text == ".":
        yield "Dockerfile"
        return
    yield text.rpartition("#")[2].rpartition("/")[2]
    yield text


def _of_url(text: str) -> Iterator[str]:
    parts = split_url(text)
    yield parts.netloc
    yield f"{parts.netloc}{parts.path}"
    yield text


def _of_command(text: str, commands: Sequence[str]) -> Iterator[str]:
    """Give its program, then also the words that other commands of that program lack."""
    program = _program(text)
    yield program
    others = [_words(command) for command in commands if _program(command) == program]
    words = _words(text)
    own = [place for place, word in enumerate(words) if not all(word in other for other in others)]
    flags = {place - 1 for place in own if place and _is_value(words[place], words[place - 1])}
    yield " ".join(
        [program, *(words[place] for place in sorted({*own, *flags}) if words[place] != program)]
    )
    yield text


def _is_value(word: str, before: str) -> bool:
    """Whether a word is what the flag before it is set to."""
    return before.startswith("-") and "=" not in before and not word.startswith("-")


def _program(text: str) -> str:
    """Give what a command starts: `uvicorn`, or `app.py` of `python3 app.py`."""
    words = _words(text)
    while len(words) > 1 and (ASSIGNMENT.fullmatch(words[0]) or words[0] in STARTERS):
        words = words[1:]
    if len(words) > 1 and INTERPRETERS.fullmatch(PurePath(words[0]).name):
        for flag, word in pairwise(words):
            if flag in TAKING_THE_PROGRAM or not word.startswith("-"):
                return PurePath(word).name
    return PurePath(words[0]).name if words else ""


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # it is a shell's business what an open quote means
        return text.split()
