"""The kinds of users' own systems, such as `cmd:COMMAND` and `url:URL`, and their names."""

import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple

from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import ordinal
from webdyno.core.text import split_url
from webdyno.systems.repository import WORKING_TREE, Repository
from webdyno.systems.target import GeneratedService, TargetSpec

Make = Callable[[TargetSpec], GeneratedService]
"""Turns a system into a service; raises UserError for what can't be, OperationError for a failure.
"""


@dataclass(frozen=True)
class OwnKind:
    """How an own system of a kind becomes a service, and which keys of a variant it understands."""

    make: Make
    takes_settings: bool = False
    """Its command finds the values of settings in its environment, or its file has places for
    them."""
    by_line: bool = False
    """A line of shell starts it, and others can fill the services behind it."""
    has_services: bool = False
    """It finds services behind it in its environment."""
    has_containers: bool = False
    """Containers run it, or may do so."""
    has_root: bool = False
    """Its document root can be exchanged."""
    has_backends: bool = False
    """Whom it passes requests on to can be exchanged."""
    is_built: bool = False
    """Programs that its files name run before it is a service: builds, or what reads them."""
    runs_already: bool = False
    """Somebody else has started it, where and as he liked."""


def _make_of(module: str) -> Make:
    """Return the `make` of a module here, imported when it is called: runs without needn't wait."""

    def make(spec: TargetSpec) -> GeneratedService:
        own_make: Make = import_module(f"{__package__}.{module}").make
        return own_make(spec)

    return make


KINDS: dict[str, OwnKind] = {
    "cmd": OwnKind(_make_of("command"), takes_settings=True, by_line=True, has_services=True),
    "rev": OwnKind(
        _make_of("revision"),
        takes_settings=True,
        by_line=True,
        has_services=True,
        has_containers=True,
        has_backends=True,
        is_built=True,
    ),
    "conf": OwnKind(
        _make_of("conf.configuration"),
        takes_settings=True,
        has_root=True,
        has_backends=True,
        is_built=True,
    ),
    "image": OwnKind(
        _make_of("containers.image"), has_services=True, has_containers=True, is_built=True
    ),
    "url": OwnKind(_make_of("url"), runs_already=True),
}
"""By the word before the colon."""
KIND_OF_APP = {"start": "cmd", "image": "image", "conf": "conf"}
"""By the key of `[app]` that says how an application is started."""


def is_own(stack: object) -> bool:
    """Whether a variant's stack is a user's own system, and none of the catalog."""
    return isinstance(stack, str) and stack.partition(":")[0] in KINDS and ":" in stack


def is_revision(stack: object) -> bool:
    """Whether it is a state of a repository, which has a `webdyno.toml`."""
    return isinstance(stack, str) and stack.startswith("rev:")


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
    """Return a name for each system: its own, or the shortest one that no other has.

    Systems that are the same, or too much alike, have their place in the command: `nginx (1st)`.
    Raise UserError where two were given one name.
    """
    given = [system.name for system in systems if system.name]
    for name in given:
        if given.count(name) > 1:
            raise UserError(f"{name}={systems[-1].system}: {name} is the name of another one")
    written = [system.system for system in systems]
    possible = [_possible_names(system, written) for system in systems]
    chosen = [0] * len(systems)
    while crowded := [
        place for place in _alike(possible, chosen) if chosen[place] + 1 < len(possible[place])
    ]:
        for place in crowded:
            chosen[place] += 1
    alike = set(_alike(possible, chosen))
    names = [possible[place][0 if place in alike else way] for place, way in enumerate(chosen)]
    return [
        f"{name} ({ordinal(place + 1)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _alike(possible: Sequence[Sequence[str]], chosen: Sequence[int]) -> list[int]:
    names = [each[way] for each, way in zip(possible, chosen, strict=True)]
    return [place for place, name in enumerate(names) if names.count(name) > 1]


def _possible_names(asked: NamedSystem, systems: Sequence[str]) -> list[str]:
    kind, colon, text = asked.system.partition(":")
    if asked.name or not colon:
        return [asked.name or asked.system]
    text = " ".join(text.split())
    match kind:
        case "cmd":
            others = [system.partition(":")[2] for system in systems if system.startswith("cmd:")]
            names = _names_of_command(text, others)
        case "rev":
            names = ["working tree" if text == "." else text[:LONGEST_NAME]]
        case "conf":
            parts = PurePath(text.rpartition(":")[2]).parts
            names = ["/".join(parts[first:]) for first in reversed(range(len(parts)))] + [text]
        case "image":
            last = text.rpartition("#")[2].rpartition("/")[2]
            names = ["Dockerfile"] if text == "." else [last, text]
        case "url":
            url = split_url(text)
            names = [url.netloc, f"{url.netloc}{url.path}", text]
        case _:
            names = [asked.system]
    short = [name for name in names if 0 < len(name) <= LONGEST_NAME]
    return list(dict.fromkeys(short)) or [kind]


def _names_of_command(text: str, commands: Sequence[str]) -> list[str]:
    """Return its program, that with the words that other commands of it lack, and all of it."""
    program = _program(text)
    others = [_words(command) for command in commands if _program(command) == program]
    words = _words(text)
    own = [place for place, word in enumerate(words) if not all(word in other for other in others)]
    flags = {
        place - 1
        for place in own
        if place
        and not words[place].startswith("-")
        and words[place - 1].startswith("-")
        and "=" not in words[place - 1]
    }
    shown = [words[place] for place in sorted({*own, *flags}) if words[place] != program]
    return [program, " ".join([program, *shown]), text]


def _program(text: str) -> str:
    """Return what a command starts: `uvicorn`, or `app.py` of `python3 app.py`."""
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


BETWEEN = {"vs", "vs.", "versus", "against"}
URL = re.compile(r"https?://\S+")
HOST_AND_PORT = re.compile(r"(localhost|\d+(\.\d+){3}|\[[0-9a-f:]+\]|[\w-]+(\.[\w-]+)+):\d+/?")
IMAGE = re.compile(r"[a-z0-9][a-z0-9._/-]*:[\w][\w.-]*")
CONFIGURATION = re.compile(r"\.(conf|cfg)$|(^|/)Caddyfile$")


@dataclass(frozen=True)
class GuessedSystems:
    """Systems in webdyno's own words, and the path that URLs among them have in common."""

    systems: Sequence[str]
    path: str = ""


def guess_systems(
    written: Sequence[str], stacks: Collection[str], *, has_path: bool = False
) -> GuessedSystems:
    """Return what is meant by each of `./server`, `http://127.0.0.1:8080/`, `main`, `nginx,caddy`.

    What a stack of the catalog is called stays one; of the rest it is guessed which kind is meant.
    Raise UserError where URLs ask for different paths.

    `has_path`: whether what is requested is said elsewhere.
    """
    words = [part for text in written for part in _parts(text, stacks)]
    named = [NamedSystem.of(word) for word in words if word not in BETWEEN]
    urls = [split_url(each.system) for each in named if URL.fullmatch(each.system)]
    asked = [f"{url.path}?{url.query}" if url.query else url.path for url in urls]
    paths = {path for path in asked if path not in {"", "/"}}
    if len(paths) > 1 or (paths and has_path):
        raise UserError(
            f"{' and '.join(sorted(paths))}: one path is requested of all; write it as --path, and "
            "URLs without one"
        )
    guessed = [_guessed(each.system, stacks) for each in named]
    systems = [
        f"{each.name}={system}" if each.name else system
        for each, system in zip(named, guessed, strict=True)
    ]
    return GuessedSystems(systems, next(iter(paths), ""))


def _parts(text: str, stacks: Collection[str]) -> Iterator[str]:
    """Yield the stacks of `nginx,caddy`, or a text as it is."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    yield from parts if any(part in stacks for part in parts) else [text]


def _guessed(text: str, stacks: Collection[str]) -> str:
    if text in stacks or is_own(text):
        return text
    if URL.fullmatch(text):
        url = split_url(text)
        return f"url:{url.scheme}://{url.netloc}"
    if HOST_AND_PORT.fullmatch(text):
        return f"url:http://{text.rstrip('/')}"
    if text == WORKING_TREE:
        return f"rev:{text}"
    if CONFIGURATION.search(text) and Path(text).is_file():
        return f"conf:{text}"
    program = next(iter(text.split()), "")
    is_command = " " in text.strip() or "/" in text
    if is_command and shutil.which(program):
        return f"cmd:{text}"
    if IMAGE.fullmatch(text):
        return f"image:{text}"
    return f"rev:{text}" if _is_revision(text) else text


def _is_revision(text: str) -> bool:
    try:
        Repository.around(Path.cwd(), text).revision(text, text)
    except (UserError, OperationError):  # no repository, or no Git
        return False
    return True
