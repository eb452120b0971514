"""Finds out from a folder's files how the application in it is built, started and asked.

Each kind of file is read by one function; the first that tells how to start wins: what people wrote
for that purpose (Procfile) before what can be guessed from a language's files.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from webdyno.own import found_languages, found_servers
from webdyno.own.found import FoundApp, read_text, sources

MOST_PATHS = 6
ROUTES = re.compile(
    r"""(?:\.(?:get|route)\(|HandleFunc\(|\bget|\bwhen)\s*["'](?:GET )?(/[\w./-]*)(?:\{\$\})?["']"""
)
"""Flask, FastAPI, Express, net/http, Sinatra and Rack: paths without parameters that a GET asks."""
UNHEARD_PORT = "nothing here mentions PORT, the variable with the port that it has to listen on"

READERS: Sequence[Callable[[Path], FoundApp | None]] = (
    found_languages.procfile,
    found_languages.python,
    found_languages.node,
    found_languages.go,
    found_languages.ruby,
    found_servers.dockerfile,
    found_servers.compose,
    found_servers.nginx,
    found_servers.pages,
)


def find_app(folder: Path) -> FoundApp | None:
    """Look at a folder; None where nothing in it is known to serve HTTP."""
    found = next(filter(None, (reader(folder) for reader in READERS)), None)
    return found and _completed(found, folder)


def _completed(found: FoundApp, folder: Path) -> FoundApp:
    """Add what holds for every kind: the paths that sources name, and a port that nobody heeds."""
    if found.paths == ("/",):
        found = replace(found, paths=tuple(_paths(folder)) or ("/",))
    if found.start and not _heeds_port(folder, found.start):
        found = replace(found, doubts=(*found.doubts, UNHEARD_PORT))
    choices = {name: _completed(each, folder) for name, each in found.choices.items()}
    return replace(found, choices=choices)


def _heeds_port(folder: Path, start: str) -> bool:
    return "PORT" in start or any("PORT" in (read_text(path) or "") for path in sources(folder))


def _paths(folder: Path) -> list[str]:
    """Give the paths that the sources name, in their order; a few of them."""
    found: dict[str, None] = {}
    for path in sources(folder):
        found |= dict.fromkeys(ROUTES.findall(read_text(path) or ""))
    return list(found)[:MOST_PATHS]
