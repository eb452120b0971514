"""Applications by their Procfile, Dockerfile, Compose files or nginx.conf, else by their pages."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.systems.containers.compose_file import USUAL_FILES, askable, read_compose
from webdyno.systems.foreign import read_text
from webdyno.systems.layouts.app import FoundApp, first_of
from webdyno.systems.layouts.compiled import find_go, find_jvm
from webdyno.systems.layouts.node import find_node, for_production
from webdyno.systems.layouts.php_and_ruby import (
    RAILS_ENVIRONMENT,
    find_php,
    find_ruby,
    is_rails,
    rails_doubts,
)
from webdyno.systems.layouts.python import in_venv
from webdyno.systems.layouts.python_tools import installing
from webdyno.systems.layouts.variables import given_port

PROCFILE_LINE = re.compile(r"^([\w-]+):[ \t]*(\S.*?)[ \t\r]*$", re.MULTILINE)
THRUSTER = re.compile(r"\bthrust(?:er)?\b")
THRUSTER_OFFSET = 32_768
"""To a port that nobody has: webdyno's own are below that."""
HEROKU_PHP = re.compile(r"(?:vendor/bin/)?heroku-(?:php|hhvm)-")
HEEDS = re.compile(r"\bgunicorn\b(?!.*(?:-b|--bind)\b)|\bpuma\b|\brails s|\bnext start\b")
"""Servers that listen on $PORT unless another port is given."""


def find_procfile(folder: Path) -> FoundApp | None:
    """Read the line `web:`; `release:` is run before each start, and no other process is."""
    lines = dict(PROCFILE_LINE.findall(read_text(folder / "Procfile") or ""))
    if "web" not in lines:
        return None
    start = given_port(lines["web"])
    if HEROKU_PHP.match(start) and (php_app := find_php(folder)):
        return php_app
    if out := _program_of_go(folder, start):
        start = out + start[len(start.split()[0]) :]
    build = _procfile_build(folder, start)
    started = for_production(in_venv(start, build))
    app = FoundApp("Procfile", started, build, heeds_port=bool(HEEDS.search(start)))
    if is_rails(folder):
        doubts = tuple(rails_doubts(folder))
        app = replace(app, environment=RAILS_ENVIRONMENT, doubts=doubts)
    if "release" in lines:
        prepare = in_venv(lines["release"], build)
        app = replace(app, prepare=prepare, notes=("`release` of Procfile runs before it starts",))
    others = [name for name in lines if name not in {"web", "release"}]
    if others:
        unstarted = f"of Procfile only web is started, without {', '.join(others)}"
        app = replace(app, notes=(*app.notes, unstarted))
    if THRUSTER.search(start):
        start = f"HTTP_PORT=$PORT TARGET_PORT=$((PORT + {THRUSTER_OFFSET})) {app.start}"
        note = "Thruster listens on HTTP_PORT, and its server on TARGET_PORT behind it"
        app = replace(app, start=start, notes=(*app.notes, note))
    return app


def _program_of_go(folder: Path, start: str) -> str | None:
    """Return where a program of Go's is to be built: Heroku finds a bare name in `bin`."""
    program = start.split()[0]
    if not (folder / "go.mod").is_file() or (folder / program).is_file():
        return None
    return program.removeprefix("./") if "/" in program else f"bin/{program}"


def _procfile_build(folder: Path, start: str) -> str | None:
    if how := installing(folder):
        return how.build
    if (out := _program_of_go(folder, start)) is not None:
        go_app = find_go(folder)
        package = ((go_app and go_app.build) or "").rpartition(" ")[2]
        return f"go build -o {out} {package or '.'}"
    found_by = (find(folder) for find in (find_ruby, find_jvm, find_php, find_node))
    return next((app.build for app in found_by if app and app.build), None)


INSTRUCTION = re.compile(
    r"^[ \t]*(FROM|ENTRYPOINT|CMD)[ \t]+(\S(?:.*\S)?)[^\S\n]*$", re.MULTILINE | re.IGNORECASE
)
COMPOSE_NAME = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml")


def find_dockerfile(folder: Path) -> FoundApp | None:
    """Take the image, whose building says what the application needs."""
    name = first_of(folder, "Containerfile", "Dockerfile")
    if name is None:
        return None
    command = given_port(image_command(read_text(folder / name) or "") or "")
    alone = f"without a container, where all that it needs is here: --start {shlex.quote(command)}"
    app = FoundApp(name, image=".", notes=(alone,) if command else ())
    files = sorted(path.name for path in folder.iterdir() if COMPOSE_NAME.fullmatch(path.name))
    if not files:
        return app
    doubt = (
        f"taken is the image of {name} alone; services and variables of {', '.join(files)} "
        f'aren\'t read: image = "{files[0]}#SERVICE" takes them (between several files a comma)'
    )
    return replace(app, doubts=(doubt,))


def image_command(text: str) -> str | None:
    """Return what an image starts by its Dockerfile: the ENTRYPOINT and CMD of its last stage."""
    instructions: dict[str, str] = {}
    for match in INSTRUCTION.finditer(text.replace("\\\n", " ")):
        word = match[1].upper()
        instructions = {} if word == "FROM" else {**instructions, word: match[2]}
    entry, command = (
        _command_words(instructions.get(instruction, "[]")) for instruction in ("ENTRYPOINT", "CMD")
    )
    if isinstance(entry, str):  # a line of shell, which takes no CMD
        return entry
    parts = [*entry, *([command] if isinstance(command, str) else command)]
    return " ".join(parts) or None


def _command_words(command: str) -> str | list[str]:
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


PYTHON_QUEUE = 4
"""Connections that Python's own server takes at once without fail: it lets five wait."""
PAGE_FOLDERS = (".", "public", "html", "www", "site", "_site", "dist")
MOST_PATHS = 6


def find_nginx(folder: Path) -> FoundApp | None:
    """Take a configuration of nginx, with the pages next to it."""
    if not (folder / "nginx.conf").is_file():
        return None
    root = _folder_of_pages(folder)
    notes = (f"root is {root}, in the place of what nginx.conf names",) if root else ()
    return FoundApp("nginx.conf", conf="nginx.conf", root=root, notes=notes)


def find_pages(folder: Path) -> FoundApp | None:
    """Have Python's own server give a folder of HTML."""
    inner = _folder_of_pages(folder)
    if inner is None:
        return None
    names = sorted(path.name for path in (folder / inner).glob("*.html"))
    server = "python3 -m http.server $PORT --bind 127.0.0.1"
    return FoundApp(
        f"{inner}/index.html".removeprefix("./"),
        server if inner == "." else f"{server} --directory {inner}",
        paths=("/", *(f"/{name}" for name in names if name != "index.html"))[:MOST_PATHS],
        connections=PYTHON_QUEUE,
    )


def _folder_of_pages(folder: Path) -> str | None:
    return next((path for path in PAGE_FOLDERS if (folder / path / "index.html").is_file()), None)
