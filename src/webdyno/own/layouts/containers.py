"""Applications that come as a Dockerfile or a Compose file."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.model.errors import UserError
from webdyno.own.compose_file import USUAL_FILES, askable, read_compose
from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import first_of, read_text
from webdyno.own.layouts.ports import given_port

INSTRUCTION = re.compile(r"^\s*(FROM|ENTRYPOINT|CMD)\s+(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
COMPOSE_NAME = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml")


def find_dockerfile(folder: Path) -> FoundApp | None:
    """Take the image, whose building says what the application needs."""
    name = first_of(folder, "Containerfile", "Dockerfile")
    if name is None:
        return None
    command = given_port(image_command(read_text(folder / name) or "") or "")
    alone = f"without a container, where all that it needs is here: --start {shlex.quote(command)}"
    notes = (alone,) if command else ()
    return FoundApp(name, image=".", notes=notes, doubts=tuple(_beside(folder, name)))


def _beside(folder: Path, name: str) -> Iterator[str]:
    """Say that Compose files aren't read where an image alone is taken."""
    files = sorted(path.name for path in folder.iterdir() if COMPOSE_NAME.fullmatch(path.name))
    if files:
        yield (
            f"taken is the image of {name} alone; services and variables of {', '.join(files)} "
            f'aren\'t read: image = "{files[0]}#SERVICE" takes them (between several files a comma)'
        )


def image_command(text: str) -> str | None:
    """Give what the image of a Dockerfile starts: ENTRYPOINT with CMD behind it, of its last stage.

    An ENTRYPOINT that is a line of shell takes no CMD.
    """
    instructions: dict[str, str] = {}
    for match in INSTRUCTION.finditer(text.replace("\\\n", " ")):
        word = match[1].upper()
        instructions = {} if word == "FROM" else {**instructions, word: match[2]}
    entry, command = (
        _words(instructions.get(instruction, "[]")) for instruction in ("ENTRYPOINT", "CMD")
    )
    if isinstance(entry, str):
        return entry
    parts = [*entry, *([command] if isinstance(command, str) else command)]
    return " ".join(parts) or None


def _words(command: str) -> str | list[str]:
    """Give the words of an exec form, or a line of shell as it is."""
    try:
        words = json.loads(command)
    except ValueError:
        return command
    return list(map(str, words)) if isinstance(words, list) else command


def find_compose(folder: Path) -> FoundApp | None:
    """Take the service that clients ask, where there is only one that it can be."""
    name = first_of(folder, *USUAL_FILES)
    if name is None:
        return None
    try:
        project = read_compose([folder / name], name)
    except UserError as error:
        return FoundApp(name, doubts=(str(error),))
    app = FoundApp(name, doubts=tuple(project.notes))
    services = askable(project.services())
    choices = {service: replace(app, image=f"{name}#{service}") for service in services}
    if len(choices) == 1:
        return next(iter(choices.values()))
    several = f"{name} has several services that could be asked" if choices else ""
    return FoundApp(name, several=several, choices=choices)
