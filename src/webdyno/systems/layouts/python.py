"""Python applications: by their application object and its framework, or by a script."""

import re
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, first_of, sources
from webdyno.systems.layouts.django import find_django
from webdyno.systems.layouts.python_fills import IMPORTED, QUIETLY, by_alembic, is_module, seed
from webdyno.systems.layouts.python_tools import (
    Installing,
    installing,
    is_workspace,
    makes_venv,
    only,
)
from webdyno.systems.layouts.start_scripts import command_of_image

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
RELATIVE = re.compile(r"^from[ \t]+\.", re.MULTILINE)
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
    r"(^|[;&|]\s*)(gunicorn|uvicorn|hypercorn|granian|daphne|waitress-serve|uwsgi|flask|fastapi|litestar"
    r"|alembic|django-admin|python3?)\b"
)
WHY = {
    True: "{server} serves it: `flask run` and app.run() are for development",
    False: "{server} serves it, without --reload",
}


class _Object(NamedTuple):
    path: Path
    name: str
    kind: str
    is_factory: bool


def find_python(folder: Path) -> FoundApp | None:
    """Find the application object, and the server for its framework."""
    how = installing(folder)
    if how and "django" in how.needs and (django := find_django(folder, how)):
        return django
    objects = list(_objects(folder, how))
    made = _of_image(folder, objects) or min(objects, key=_unlikeliness, default=None)
    if made and (inner := _member_of(folder, made, how)):
        app = find_python(inner)
        return app and replace(app, dir=(inner.relative_to(folder) / app.dir).as_posix())
    if made and (how or made.path.parent == folder):
        alone = only(made.path.relative_to(folder).as_posix(), [made.kind])
        return _with_server(folder, made, how or alone)
    if how is None:
        return None
    if script := _script(folder):
        return FoundApp(how.by, f".venv/bin/python {script}", how.build, notes=how.notes)
    lacks = how.needs & {"flask", "fastapi", "django", "starlette", "aiohttp", "tornado"}
    doubt = f"it needs {', '.join(sorted(lacks))}, and no application object was found"
    return FoundApp(how.by, build=how.build, doubts=(doubt,)) if lacks else None


SERVED = re.compile(
    r"\b(?:gunicorn|uvicorn|hypercorn|granian|daphne)\b[^\n]{0,200}?[\s\"',](?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?P<call>\(\))?"
)
"""A server's command, and what it serves."""


def _of_image(folder: Path, objects: Sequence[_Object]) -> _Object | None:
    """Return the object that the command of an image names, where its module is there."""
    _, command = command_of_image(folder)
    served = SERVED.search(command)
    if served is None:
        return None
    inside = "/".join(served["module"].split("."))
    for place in (f"{inside}.py", f"{inside}/__init__.py", f"src/{inside}.py"):
        path = folder / place
        same = (each for each in objects if each.path == path and each.name == served["name"])
        if made := next(same, None):
            return made
        text = read_text(path)
        kind = objects[0].kind if objects else ""
        if text is not None and kind and re.search(rf"\b{served['name']}\b", text):
            return _Object(path, served["name"], kind, is_factory=bool(served["call"]))
    return None


def _member_of(folder: Path, made: _Object, how: Installing | None) -> Path | None:
    """Return the folder within which an object has a list of its own, if that is the one to take.

    That is so in a workspace, and where the list at the top doesn't name its framework.
    """
    if how is None or (made.kind in how.needs and not is_workspace(folder)):
        return None
    for parent in made.path.parents:
        if parent == folder or not parent.is_relative_to(folder):
            return None
        own = installing(parent)
        if own and made.kind in own.needs:
            return parent
    return None


def _with_server(folder: Path, made: _Object, how: Installing) -> FoundApp:
    root, where = _module(folder, made.path, how.needs)
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
    prepare = None
    if "flask-migrate" in how.needs and (folder / "migrations/env.py").is_file():
        prepare = f".venv/bin/flask --app {own} db upgrade {QUIETLY}"
    elif "alembic" in how.needs:
        prepare = by_alembic(folder, root)
    package = where.rpartition(".")[0] if root == "." else ""
    setup, notes = seed(folder, own, package), (why, *how.notes)
    return FoundApp(how.by, start, how.build, prepare=prepare, setup=setup, notes=notes)


def _module(folder: Path, file: Path, needs: Set[str]) -> tuple[str, str]:
    """Return the folder in which a module is looked up, and its dotted name there.

    That is where it imports its own package from, or its neighbors, the folder around its packages,
    one with a list of what it needs, or `src`.
    """
    text = read_text(file) or ""
    root = _imported_from(folder, file) or _around(folder, file)
    others = set(IMPORTED.findall(text)) - sys.stdlib_module_names - needs
    is_near = not RELATIVE.search(text) and any(is_module(file.parent, name) for name in others)
    root = file.parent if is_near and not any(is_module(root, name) for name in others) else root
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    return root.relative_to(folder).as_posix(), name.removesuffix(".__init__")


def _imported_from(folder: Path, file: Path) -> Path | None:
    """Return the folder in which a module finds the package that it is in, by what it imports."""
    imported = set(IMPORTED.findall(read_text(file) or ""))
    inner = file.parent
    while inner != folder:
        if inner.name in imported:
            return inner.parent
        inner = inner.parent
    return None


def _around(folder: Path, file: Path) -> Path:
    root = file.parent
    while root != folder and (root / "__init__.py").is_file():
        root = root.parent
    if root == file.parent:
        above = [parent for parent in (root, *root.parents) if parent.is_relative_to(folder)]
        lists = ("pyproject.toml", "requirements.txt")
        root = next((parent for parent in above if first_of(parent, *lists)), folder)
    is_below = root == folder and (folder / "src") in file.parents
    return folder / "src" if is_below else root


def _objects(folder: Path, how: Installing | None) -> Iterator[_Object]:
    """Return every application object of the sources, and every function that makes one."""
    needs = how.needs if how else frozenset()
    frameworks = ("flask", "fastapi", "starlette", "quart")
    framework = next((name for name in frameworks if name in needs), "")
    for path in sources(folder):
        is_hidden = (path.with_suffix("") / "__init__.py").is_file()  # a package of its name counts
        text = read_text(path) or "" if path.suffix == ".py" and not is_hidden else ""
        for match in MADE.finditer(text):
            yield _Object(path, match["name"], match["kind"].lower(), is_factory=False)
        kind = KIND.search(text)
        for match in CALLED.finditer(text) if framework or kind else ():
            yield _Object(path, match["name"], kind[1] if kind else framework, is_factory=False)
        for match in FACTORY.finditer(text) if kind else ():
            first = match["arguments"].partition(",")[0].strip()
            if not first or "=" in first or first.startswith("*"):  # it can be called without any
                yield _Object(path, match["name"], kind[1] if kind else "", is_factory=True)


def _unlikeliness(app: _Object) -> tuple[bool, int, int]:
    """Return a key for objects before factories, those further up, and usual names of modules."""
    usual = USUAL.index(app.path.stem) if app.path.stem in USUAL else len(USUAL)
    return app.is_factory, len(app.path.parts), usual


def _script(folder: Path) -> str | None:
    for path in sources(folder):
        text = read_text(path) or "" if path.suffix == ".py" else ""
        if "__main__" in text and SCRIPT.search(text):
            return path.relative_to(folder).as_posix()
    return None


def in_venv(start: str, build: str | None) -> str:
    """Return a command that calls programs in `.venv`, if that is built."""
    if not makes_venv(build):
        return start
    by_path = "PATH=$PWD/.venv/bin:$PATH " if start.startswith("make ") else ""
    return by_path + OF_VENV.sub(r"\1.venv/bin/\2", start)
