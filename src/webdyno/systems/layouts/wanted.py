"""Variables without which a program ends, and that nothing gives it."""

import re
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import SOURCES, FoundApp, sources
from webdyno.systems.layouts.settings import (
    ASSIGNED,
    CONFIGURATIONS,
    ENV_FILE,
    IS_GIVEN,
    PLAIN_VALUE,
    example_file,
    example_of,
)
from webdyno.systems.layouts.typed_settings import WANTED

GIVEN = re.compile(r"\b([A-Z][A-Z0-9_]*)=")
"""In a command."""
WITHOUT_DEFAULT = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
LACKS = "its settings want {names}: --env NAME=VALUE gives them, environment.NAME below [app]"


def with_wanted_variables(app: FoundApp, folder: Path) -> FoundApp:
    """Name the variables without which a program ends, and that nothing gives it."""
    if not app.start:
        return app
    wanted = {
        name
        for path in sources(folder)
        if (read := WANTED.get(path.suffix))
        for name in read(read_text(path) or "")
    }
    for path in sources(folder, CONFIGURATIONS):
        if path.stem == "application":
            wanted |= set(WITHOUT_DEFAULT.findall(read_text(path) or ""))
    examples = {match["name"] for match in PLAIN_VALUE.finditer(example_of(folder))}
    given = app.environment.keys() | examples | set(GIVEN.findall(f"{app.start} {app.build}"))
    given |= set(ASSIGNED.findall(read_text(folder / ENV_FILE) or ""))
    lacking = sorted(
        name for name in wanted - given if not (name == "PORT" or _is_of_service(name, app))
    )
    doubt = LACKS.format(names=", ".join(lacking))
    return replace(app, doubts=(*app.doubts, doubt)) if lacking else app


OF_API = re.compile(r"\w*(?:API|BACKEND)_(?:BASE_|SERVER_)?(?:URL|URI|HOST|ENDPOINT)")
IS_HERE = re.compile(r"[\"']?https?://(?:localhost|127\.0\.0\.1|backend|api|server)\b")
ASKS = (
    "its sources ask {name}, {value} in {example}: have that run on this machine, which both "
    "variants then share, and name it as environment.{name} below [app]"
)


def with_what_it_asks(app: FoundApp, folder: Path) -> FoundApp:
    """Name the other application that one asks, as a front asks what is behind it."""
    text = "\n".join(
        read_text(path) or "" for path in sources(folder, SOURCES | {".svelte", ".vue"})
    )
    asked = (
        ASKS.format(name=match["name"], value=match["value"], example=example_file(folder))
        for match in PLAIN_VALUE.finditer(example_of(folder))
        if OF_API.fullmatch(match["name"])
        and IS_HERE.match(match["value"])
        and re.search(rf"\benv\.{match['name']}\b", text)
    )
    doubt = next(asked, None)
    return replace(app, doubts=(*app.doubts, doubt)) if app.start and doubt else app


def _is_of_service(name: str, app: FoundApp) -> bool:
    return bool(app.services) and IS_GIVEN.fullmatch(name) is not None
