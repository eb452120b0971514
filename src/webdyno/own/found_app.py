"""Finds out from a folder's files how the application in it is built, started and asked.

Each kind of file is read by one function; the first that tells how to start wins: what people wrote
for that purpose (Procfile) before what can be guessed from a language's files.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from webdyno.model.errors import UserError
from webdyno.own import found_compiled, found_languages
from webdyno.own.compose_file import USUAL_FILES, askable, read_compose
from webdyno.own.found import MOST_PATHS, FoundApp, first_of, read_text, sources

ROUTES = re.compile(
    r"""(?:\.(?:get|route)\(|HandleFunc\(|\bget|\bwhen)\s*["'](?:GET )?(/[\w./-]*)(?:\{\$\})?["']"""
)
"""Flask, FastAPI, Express, net/http, Sinatra and Rack: paths without parameters that a GET asks."""
STATUS = re.compile(
    r"(?:WriteHeader\(|sendStatus\(|status_code\s*=\s*)(?P<number>[2-5]\d\d)\b"
    r"|(?P<none>Status\.?No_?Content)",
    re.IGNORECASE,
)
"""How Go, Express and FastAPI give a status."""
NO_CONTENT = 204
OK = 200
UNHEARD_PORT = "nothing here mentions PORT, the variable with the port that it has to listen on"
BOTH_UP = "both variants are up at the same time, and need a port each"
LOOKED_FOR = (
    "Procfile, pyproject.toml, requirements.txt, package.json, go.mod, Cargo.toml, pom.xml, "
    "build.gradle, config.ru, Dockerfile, Compose files, nginx.conf, index.html"
)
PYTHON_QUEUE = 4
"""Connections that Python's own server surely takes at once: it lets no more than five wait."""
INSTRUCTION = re.compile(r"^\s*(FROM|ENTRYPOINT|CMD)\s+(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
COMPOSE_NAME = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml")
PAGES = (".", "public", "html", "www", "site", "_site", "dist")
ROOTED = "root is {root}, in the place of what nginx.conf names"


def find_app(folder: Path) -> FoundApp | None:
    """Look at a folder; None where nothing in it is known to serve HTTP."""
    found = [it for reader in READERS if (it := reader(folder))]
    telling = [it for it in found if it.is_whole or it.choices]
    first = next(iter(telling or found), None)
    return first and _completed(first, folder)


def _completed(found: FoundApp, folder: Path) -> FoundApp:
    """Add what holds for every kind: the paths that sources name, and a port that nobody heeds."""
    if found.paths == ("/",):
        statuses = _paths(folder)
        others = {path: status for path, status in statuses.items() if status != OK}
        found = replace(found, paths=tuple(statuses) or ("/",), statuses=others)
    if found.start and not found.heeds_port and not _heeds_port(folder, found.start):
        found = replace(found, doubts=(*found.doubts, _unheard(folder)))
    choices = {name: _completed(each, folder) for name, each in found.choices.items()}
    return replace(found, choices=choices)


def _unheard(folder: Path) -> str:
    fixed = found_compiled.fixed_address(folder)
    return f"{UNHEARD_PORT}; it binds {fixed}: {BOTH_UP}" if fixed else UNHEARD_PORT


def _heeds_port(folder: Path, start: str) -> bool:
    return "PORT" in start or any("PORT" in (read_text(path) or "") for path in sources(folder))


def _paths(folder: Path) -> dict[str, int]:
    """Give the paths that the sources name, in their order, with their statuses; a few of them."""
    found: dict[str, int] = {}
    for path in sources(folder):
        text = read_text(path) or ""
        for route in ROUTES.finditer(text):
            handler = text[route.end() :].partition("\n")[0]
            found.setdefault(route[1], _status(handler))
    return dict(list(found.items())[:MOST_PATHS])


def _status(handler: str) -> int:
    said = STATUS.search(handler)
    if said is None:
        return OK
    return NO_CONTENT if said["none"] else int(said["number"])


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
    except UserError as error:
        return FoundApp(name, doubts=(str(error),))
    app = FoundApp(name, doubts=tuple(project.notes))
    services = askable(project.services())
    choices = {it: replace(app, image=f"{name}#{it}") for it in services}
    if len(choices) == 1:
        return next(iter(choices.values()))
    several = f"{name} has several services that could be asked" if choices else ""
    return FoundApp(name, several=several, choices=choices)


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


READERS: Sequence[Callable[[Path], FoundApp | None]] = (
    *(found_languages.procfile, found_languages.python, found_languages.node),
    *(found_compiled.go, found_compiled.cargo, found_compiled.java, found_languages.ruby),
    *(dockerfile, compose, nginx, pages),
)
