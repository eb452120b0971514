"""Systems as people write them: `./server`, `http://127.0.0.1:8080/`, `main`, `nginx,caddy`.

What a stack of the catalog is called stays one; of the rest it is guessed which kind is meant.
"""

import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.core.errors import OperationError, UserError
from webdyno.core.text import split_url
from webdyno.systems.kinds import NamedSystem, is_own
from webdyno.systems.repository import WORKING_TREE, Repository

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
    """Return what is meant by each; raise UserError where URLs ask for different paths.

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
