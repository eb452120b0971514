"""Finds out from a folder's files how the application in it is built, started and asked.

Each kind of file is read by one function; the first that tells how to start wins: what people wrote
for that purpose (Procfile) before what can be guessed from a language's files.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from webdyno.own import found_compiled, found_languages, found_node, found_servers
from webdyno.own.found import MOST_PATHS, FoundApp, read_text, sources

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

READERS: Sequence[Callable[[Path], FoundApp | None]] = (
    found_languages.procfile,
    found_languages.python,
    found_node.node,
    found_compiled.go,
    found_compiled.cargo,
    found_compiled.java,
    found_languages.ruby,
    found_servers.dockerfile,
    found_servers.compose,
    found_servers.nginx,
    found_servers.pages,
)


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
