"""Applications known by how they are put on a machine: images, a server's configuration, pages."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.model.mistake import Mistake
from webdyno.own.compose_file import USUAL_FILES, ComposeProject, askable, read_compose
from webdyno.own.found import MOST_PATHS, FoundApp, first_of, read_text

PYTHON_QUEUE = 4
"""Connections that Python's own server surely takes at once: it lets no more than five wait."""
INSTRUCTION = re.compile(r"^\s*(FROM|ENTRYPOINT|CMD)\s+(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
COMPOSE_NAME = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml")
PAGES = (".", "public", "html", "www", "site", "_site", "dist")
ROOTED = "root is {root}, in the place of what nginx.conf names"


def dockerfile(folder: Path) -> FoundApp | None:
    """Take the image, whose building says what the application needs."""
    name = first_of(folder, "Containerfile", "Dockerfile")
    if name is None:
        return None
    command = image_command(read_text(folder / name) or "")
    return FoundApp(name, image=".", command=command, doubts=tuple(_beside(folder, name)))


def _beside(folder: Path, name: str) -> Iterator[str]:
    """Say that Compose files aren't read where an image alone is taken."""
    files = sorted(it.name for it in folder.iterdir() if COMPOSE_NAME.fullmatch(it.name))
    if files:
        yield (
            f"taken is the image of {name} alone; services and variables of {', '.join(files)} "
            f'aren\'t read: image = "{files[0]}#SERVICE" takes them (between several files a comma)'
        )


def image_command(text: str) -> str | None:
    """Give what the image of a Dockerfile starts: ENTRYPOINT with CMD behind it, of its last stage.

    An ENTRYPOINT that is a line of shell takes no CMD.
    """
    said: dict[str, str] = {}
    for found in INSTRUCTION.finditer(text.replace("\\\n", " ")):
        word = found[1].upper()
        said = {} if word == "FROM" else {**said, word: found[2]}
    entry, command = (_words(said.get(it, "[]")) for it in ("ENTRYPOINT", "CMD"))
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


def compose(folder: Path) -> FoundApp | None:
    """Take the service that clients ask, where there is only one that it can be."""
    name = first_of(folder, *USUAL_FILES)
    if name is None:
        return None
    try:
        project = read_compose([folder / name], name)
    except Mistake as mistake:
        return FoundApp(name, doubts=(str(mistake),))
    app = FoundApp(name, doubts=tuple(_of_compose(project)))
    services = askable(project.services())
    choices = {it: replace(app, image=f"{name}#{it}") for it in services}
    if len(choices) == 1:
        return next(iter(choices.values()))
    several = f"{name} has several services that could be asked" if choices else ""
    return FoundApp(name, several=several, choices=choices)


def _of_compose(project: ComposeProject) -> Iterator[str]:
    if len(project.files) > 1:
        yield f"{project.files[-1].name} is merged into {project.files[0].name}"
    if project.unset:
        yield f"set by nobody, so empty: {', '.join(project.unset)}"


def nginx(folder: Path) -> FoundApp | None:
    """Take a configuration of nginx, with the pages beside it."""
    if not (folder / "nginx.conf").is_file():
        return None
    root = _folder_of_pages(folder)
    doubts = (ROOTED.format(root=root),) if root else ()
    return FoundApp("nginx.conf", conf="nginx.conf", root=root, doubts=doubts)


def pages(folder: Path) -> FoundApp | None:
    """Have Python's own server give a folder of HTML."""
    inner = _folder_of_pages(folder)
    if inner is None:
        return None
    names = sorted(it.name for it in (folder / inner).glob("*.html"))
    server = "python3 -m http.server $PORT --bind 127.0.0.1"
    return FoundApp(
        f"{inner}/index.html".removeprefix("./"),
        server if inner == "." else f"{server} --directory {inner}",
        paths=("/", *(f"/{it}" for it in names if it != "index.html"))[:MOST_PATHS],
        connections=PYTHON_QUEUE,
    )


def _folder_of_pages(folder: Path) -> str | None:
    return next((it for it in PAGES if (folder / it / "index.html").is_file()), None)
