"""Applications with a Procfile: what people wrote for that purpose."""

import re
from dataclasses import replace
from pathlib import Path

from webdyno.own.layouts import go, java, node, php, ruby
from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import read_text
from webdyno.own.layouts.node_start import for_production
from webdyno.own.layouts.ports import given_port
from webdyno.own.layouts.python import in_venv
from webdyno.own.layouts.python_tools import installing

LINE = re.compile(r"^([\w-]+):[ \t]*(\S.*?)[ \t\r]*$", re.MULTILINE)
THRUSTER = re.compile(r"\bthrust(?:er)?\b")
THRUSTER_OFFSET = 32_768
"""To a port that nobody has: webdyno's own are below that."""
HEROKU_PHP = re.compile(r"(?:vendor/bin/)?heroku-(?:php|hhvm)-")
HEEDS = re.compile(r"\bgunicorn\b(?!.*(?:-b|--bind)\b)|\bpuma\b|\brails s|\bnext start\b")
"""Servers that listen on $PORT unless they are told another one."""


def find_in(folder: Path) -> FoundApp | None:
    """Read the line `web:`; `release:` is run before each start, and no other process is."""
    lines = dict(LINE.findall(read_text(folder / "Procfile") or ""))
    if "web" not in lines:
        return None
    start = given_port(lines["web"])
    if HEROKU_PHP.match(start) and (php_app := php.find_in(folder)):
        return php_app
    if out := _program_of_go(folder, start):
        start = out + start[len(start.split()[0]) :]
    heeds = bool(HEEDS.search(start))
    build = _build(folder, start)
    app = FoundApp("Procfile", start, build, prepare=lines.get("release"), heeds_port=heeds)
    app = replace(app, start=for_production(in_venv(start, app.build)))
    if ruby.is_rails(folder):
        doubts = tuple(ruby.rails_doubts(folder))
        app = replace(app, environment=ruby.rails_environment(), doubts=doubts)
    if app.prepare:
        prepare = in_venv(app.prepare, app.build)
        app = replace(app, prepare=prepare, notes=("`release` of Procfile runs before it starts",))
    others = [name for name in lines if name not in {"web", "release"}]
    if others:
        unstarted = f"of Procfile only web is started, without {', '.join(others)}"
        app = replace(app, notes=(*app.notes, unstarted))
    return _behind_thruster(app) if THRUSTER.search(start) else app


def _behind_thruster(app: FoundApp) -> FoundApp:
    start = f"HTTP_PORT=$PORT TARGET_PORT=$((PORT + {THRUSTER_OFFSET})) {app.start}"
    note = "Thruster listens on HTTP_PORT, and its server on TARGET_PORT behind it"
    return replace(app, start=start, notes=(*app.notes, note))


def _program_of_go(folder: Path, start: str) -> str | None:
    """Give where a program of Go's is to be built: Heroku finds a bare name in `bin`."""
    program = start.split()[0]
    if not (folder / "go.mod").is_file() or (folder / program).is_file():
        return None
    return program.removeprefix("./") if "/" in program else f"bin/{program}"


def _build(folder: Path, start: str) -> str | None:
    """Give how it is built: by the files of the first language that has something to build."""
    if how := installing(folder):
        return how.build
    if (out := _program_of_go(folder, start)) is not None:
        go_app = go.find_in(folder)
        package = ((go_app and go_app.build) or "").rpartition(" ")[2]
        return f"go build -o {out} {package or '.'}"
    found_by = (find(folder) for find in (ruby.find_in, java.find_in, php.find_in, node.find_in))
    return next((app.build for app in found_by if app and app.build), None)
