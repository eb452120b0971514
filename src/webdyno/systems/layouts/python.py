"""Python applications: their application object, and the server for its framework."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.django import SEEDS, find_django
from webdyno.systems.layouts.files import first_of, read_text, sources
from webdyno.systems.layouts.python_tools import Installing, installing, only

FLASK_COMMAND = re.compile(
    r"""@app\.cli\.command\(\s*(?:["'](?P<given>[\w-]+)["'])?[^\n]*\n"""
    r"""(?:\s*@[^\n]*\n){0,20}\s*def (?P<function>\w+)"""
)
"""A command of Flask's that may fill the database; without a name its function gives one."""
QUIETLY = ">/dev/null"
MADE = re.compile(
    r"^(?P<name>\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)*"
    r"(?P<kind>Flask|FastAPI|Starlette|Litestar|Quart|Sanic|Bottle|Blacksheep)\(",
    re.MULTILINE,
)
FACTORY = re.compile(
    r"^(?:async )?def (?P<name>(?:create|make|get|build|init)_?(?:app|application|asgi_app))\("
    r"(?P<arguments>[^)]*)\)",
    re.MULTILINE,
)
CALLED = re.compile(
    r"^(?P<name>app|application|api|server)\s*=\s*(?:\w+\.)*"
    r"(?:create|make|get|build|init)_?(?:app|application|asgi_app|wsgi_app)\(",
    re.MULTILINE,
)
"""An object that a factory makes, as in `wsgi.py`."""
KIND = re.compile(r"\b(?:from|import)\s+(flask|fastapi|starlette|litestar|quart|bottle|falcon)\b")
SCRIPT = re.compile(r"web\.run_app\(|HTTPServer\(|\.listen\(|make_server\(|serve_forever\(")
LISTENS = {
    "gunicorn": "--bind 127.0.0.1:$PORT",
    "uvicorn": "--host 127.0.0.1 --port $PORT",
    "hypercorn": "--bind 127.0.0.1:$PORT",
    "granian": "--interface asgi --host 127.0.0.1 --port $PORT",
    "waitress-serve": "--listen 127.0.0.1:$PORT",
}
WSGI = {"flask", "bottle", "falcon"}
SERVERS = {True: ("gunicorn", "waitress"), False: ("uvicorn", "hypercorn", "granian")}
"""For WSGI and for ASGI: those that are taken where they are installed, the first one else."""
PROGRAMS = {"waitress": "waitress-serve"}
LOOKS_IN = {"gunicorn": "--chdir", "uvicorn": "--app-dir", "granian": "--working-dir"}
"""The flag for the folder that modules are looked up in."""
FACTORY_FLAG = {"uvicorn": "--factory ", "granian": "--factory ", "waitress": "--call "}
USUAL = ("wsgi", "asgi", "main", "app", "server", "run", "application", "api", "__init__")
"""Names of modules that hold the application, the likeliest first."""
OF_VENV = re.compile(
    r"(^|[;&|]\s*)(gunicorn|uvicorn|hypercorn|granian|daphne|waitress-serve|flask|fastapi|python3?)\b"
)
WHY = {
    True: "{server} serves it: `flask run` and app.run() are for development",
    False: "{server} serves it, without --reload",
}


class _Object(NamedTuple):
    """Where an application object is."""

    path: Path
    name: str
    kind: str
    is_factory: bool


def find_in(folder: Path) -> FoundApp | None:
    """Find the application object, and the server for its framework."""
    how = installing(folder)
    if how and "django" in how.needs and (django := find_django(folder, how)):
        return django
    made = _best(list(_objects(folder, how)))
    if made and (how or made.path.parent == folder):
        alone = only(made.path.relative_to(folder).as_posix(), [made.kind])
        return _served(folder, made, how or alone)
    if how is None:
        return None
    if script := _script(folder):
        return FoundApp(how.by, f".venv/bin/python {script}", how.build, notes=how.notes)
    lacks = how.needs & {"flask", "fastapi", "django", "starlette", "aiohttp", "tornado"}
    doubt = f"it needs {', '.join(sorted(lacks))}, and no application object was found"
    return FoundApp(how.by, build=how.build, doubts=(doubt,)) if lacks else None


def _served(folder: Path, made: _Object, how: Installing) -> FoundApp:
    root, where = _module(folder, made.path)
    if made.kind == "sanic":
        listens = "--host=127.0.0.1 --port=$PORT --single-process"
        return FoundApp(how.by, f".venv/bin/sanic {where}:{made.name} {listens}", how.build)
    is_wsgi = made.kind in WSGI
    usual = SERVERS[is_wsgi]
    server = next((name for name in usual if name in how.needs), usual[0])
    how = how.with_package(server)
    program = PROGRAMS.get(server, server)
    target, flag = f"{where}:{made.name}", ""
    if made.is_factory and server in FACTORY_FLAG:
        flag = FACTORY_FLAG[server]
    elif made.is_factory:
        target = f"'{target}()'"
    if root != "." and server in LOOKS_IN:
        flag += f"{LOOKS_IN[server]} {root} "
    start = f".venv/bin/{program} {flag}{target} {LISTENS[program]}"
    why = WHY[is_wsgi].format(server=server.capitalize())
    place = where if root == "." else f"{root}/{where.replace('.', '/')}"
    own = f"{place}:{made.name}"
    prepare, setup = _migration(folder, how, own), _seed(folder, own)
    notes = (why, *how.notes)
    return FoundApp(how.by, start, how.build, prepare=prepare, setup=setup, notes=notes)


def _module(folder: Path, file: Path) -> tuple[str, str]:
    """Give the folder in which a module is looked up, and its dotted name there.

    That is the folder around its packages, one with a list of what it needs, or `src`.
    """
    root = file.parent
    while root != folder and (root / "__init__.py").is_file():
        root = root.parent
    if root == file.parent:
        above = [parent for parent in (root, *root.parents) if parent.is_relative_to(folder)]
        listing = (
            parent for parent in above if first_of(parent, "pyproject.toml", "requirements.txt")
        )
        root = next(listing, folder)
    if root == folder and (folder / "src") in file.parents:
        root = folder / "src"
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    return root.relative_to(folder).as_posix(), name.removesuffix(".__init__")


def _objects(folder: Path, how: Installing | None) -> Iterator[_Object]:
    """Give every application object of the sources, and every function that makes one."""
    needs = how.needs if how else frozenset()
    framework = next(
        (name for name in ("flask", "fastapi", "starlette", "quart") if name in needs), ""
    )
    for path in sources(folder):
        text = read_text(path) or "" if path.suffix == ".py" else ""
        for match in MADE.finditer(text):
            yield _Object(path, match["name"], match["kind"].lower(), is_factory=False)
        kind = KIND.search(text)
        for match in CALLED.finditer(text) if framework or kind else ():
            yield _Object(path, match["name"], kind[1] if kind else framework, is_factory=False)
        for match in FACTORY.finditer(text) if kind else ():
            if not _wants(match["arguments"]):
                yield _Object(path, match["name"], kind[1] if kind else "", is_factory=True)


def _wants(arguments: str) -> bool:
    """Whether a function can't be called without arguments."""
    given = (part.strip() for part in arguments.split(",")[:1])
    return any(
        argument and "=" not in argument and not argument.startswith("*") for argument in given
    )


def _best(objects: list[_Object]) -> _Object | None:
    """Choose: objects before factories, those further up first, then by the module's usual name."""
    return min(objects, key=_likeliness, default=None)


def _likeliness(app: _Object) -> tuple[bool, int, int]:
    usual = USUAL.index(app.path.stem) if app.path.stem in USUAL else len(USUAL)
    return app.is_factory, len(app.path.parts), usual


def _script(folder: Path) -> str | None:
    for path in sources(folder):
        text = read_text(path) or "" if path.suffix == ".py" else ""
        if "__main__" in text and SCRIPT.search(text):
            return path.relative_to(folder).as_posix()
    return None


def in_venv(start: str, build: str | None) -> str:
    """Give a start command with programs of `.venv` in their full place, if that is built."""
    return OF_VENV.sub(r"\1.venv/bin/\2", start) if build and ".venv" in build else start


def _migration(folder: Path, how: Installing, target: str) -> str | None:
    """Give what brings its tables up to date; `target` is the application, for Flask's command."""
    if "flask-migrate" in how.needs and (folder / "migrations/env.py").is_file():
        return f".venv/bin/flask --app {target} db upgrade {QUIETLY}"
    if "alembic" in how.needs and (folder / "alembic.ini").is_file():
        return f".venv/bin/alembic upgrade head {QUIETLY}"
    return None


def _seed(folder: Path, target: str) -> str | None:
    """Give what fills them: a command of Flask's, or a program of a usual name."""
    commands = {
        command["given"] or command["function"].replace("_", "-")
        for path in sources(folder)
        for command in FLASK_COMMAND.finditer(read_text(path) or "")
    }
    for name in SEEDS:
        for command in (name, name.replace("_", "-")):
            if command in commands:
                return f".venv/bin/flask --app {target} {command} {QUIETLY}"
    programs = {f"{name}.py": f"{name}.py" for name in SEEDS}
    programs |= {f"scripts/{name}.py": f"-m scripts.{name}" for name in SEEDS}
    by_file = next((words for name, words in programs.items() if (folder / name).is_file()), None)
    return f".venv/bin/python {by_file} {QUIETLY}" if by_file else None
