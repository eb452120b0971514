"""Python applications: Django's, and others by their application object and its framework."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FOR_MEASURING, FoundApp, first_of, sources
from webdyno.systems.layouts.databases import NAMED
from webdyno.systems.layouts.python_tools import (
    Installing,
    installing,
    is_workspace,
    makes_venv,
    only,
)

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
IMPORTS_SRC = re.compile(r"^(?:from|import) src\b", re.MULTILINE)
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
    made = min(_objects(folder, how), key=_unlikeliness, default=None)
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
    prepare = None
    if "flask-migrate" in how.needs and (folder / "migrations/env.py").is_file():
        prepare = f".venv/bin/flask --app {own} db upgrade {QUIETLY}"
    elif "alembic" in how.needs:
        prepare = _by_alembic(folder)
    package = where.rpartition(".")[0] if root == "." else ""
    setup, notes = _seed(folder, own, package), (why, *how.notes)
    return FoundApp(how.by, start, how.build, prepare=prepare, setup=setup, notes=notes)


def _by_alembic(folder: Path) -> str | None:
    """Return what migrates; where its file lies deeper it is called from there."""
    if (folder / "alembic.ini").is_file():
        return f".venv/bin/alembic upgrade head {QUIETLY}"
    below = (*sorted(folder.glob("*/alembic.ini")), *sorted(folder.glob("*/*/alembic.ini")))
    inside = next((path.parent.relative_to(folder) for path in below), None)
    if inside is None or not re.fullmatch(r"[\w./-]+", str(inside)):
        return None
    up = "../" * len(inside.parts)
    return f"(cd {inside} && {up}.venv/bin/alembic upgrade head {QUIETLY})"


def _module(folder: Path, file: Path) -> tuple[str, str]:
    """Return the folder in which a module is looked up, and its dotted name there.

    That is the folder around its packages, one with a list of what it needs, or `src`.
    """
    root = file.parent
    while root != folder and (root / "__init__.py").is_file():
        root = root.parent
    if root == file.parent:
        above = [parent for parent in (root, *root.parents) if parent.is_relative_to(folder)]
        lists = ("pyproject.toml", "requirements.txt")
        root = next((parent for parent in above if first_of(parent, *lists)), folder)
    is_below = root == folder and (folder / "src") in file.parents
    if is_below and not IMPORTS_SRC.search(read_text(file) or ""):
        root = folder / "src"
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    return root.relative_to(folder).as_posix(), name.removesuffix(".__init__")


def _objects(folder: Path, how: Installing | None) -> Iterator[_Object]:
    """Return every application object of the sources, and every function that makes one."""
    needs = how.needs if how else frozenset()
    frameworks = ("flask", "fastapi", "starlette", "quart")
    framework = next((name for name in frameworks if name in needs), "")
    for path in sources(folder):
        text = read_text(path) or "" if path.suffix == ".py" else ""
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
    return OF_VENV.sub(r"\1.venv/bin/\2", start) if makes_venv(build) else start


def _seed(folder: Path, target: str, package: str) -> str | None:
    """Return what fills tables: a command of Flask's, or a program of a usual name."""
    commands = {
        command["given"] or command["function"].replace("_", "-")
        for path in sources(folder)
        for command in FLASK_COMMAND.finditer(read_text(path) or "")
    }
    for name in SEEDS:
        for command in (name, name.replace("_", "-")):
            if command in commands:
                return f".venv/bin/flask --app {target} {command} {QUIETLY}"
    program = next(_seeding_programs(folder, package), None)
    return f".venv/bin/python {program} {QUIETLY}" if program else None


def _seeding_programs(folder: Path, package: str) -> Iterator[str]:
    """Return what Python is called with; what a package imports isn't taken for a program."""
    inside = folder.joinpath(*package.split("."))
    for name in SEEDS:
        if (folder / f"{name}.py").is_file():
            yield f"{name}.py"
        if (folder / f"scripts/{name}.py").is_file():
            yield f"-m scripts.{name}"
        if package and "__main__" in (read_text(inside / f"{name}.py") or ""):
            yield f"-m {package}.{name}"


SETTINGS_MODULE = re.compile(r"""DJANGO_SETTINGS_MODULE["'],\s*["']([\w.]+)["']""")
DJANGO_PATH = re.compile(
    r"""^[ \t]*path\(\s*["']([\w./-]*)["']\s*,(?!\s*(?:include|admin))""", re.MULTILINE
)
PRODUCTION = ("production", "prod", "live", "deploy")
THIS_HOST = re.compile(r"""["'](?:127\.0\.0\.1|\*)["']""")
ALLOWED_HOSTS = re.compile(
    r"^[ \t]*ALLOWED_HOSTS\s*\+?=(?P<said>[^\n]*(?:\n[ \t]+[^\n]*)*)", re.MULTILINE
)
READ_VARIABLE = r"""(?:config|env\w*(?:\.\w+)?)\s*[(\[]\s*["'](\w+)["']"""
"""A variable that settings read, by os.environ, django-environ or python-decouple."""
WANTED_VARIABLE = re.compile(
    r"""(?:environ\[|(?<![\w.])(?:config|env(?:\.\w+)?)\()\s*["'](?P<name>[A-Z]\w+)["']\s*[\])]"""
)
"""A variable without which they fail."""
OF_SERVICES = {"DATABASE_URL", "REDIS_URL"}
"""Variables of services behind it."""
OF_SECRET = re.compile(r"SECRET|_KEY$|TOKEN|PASSWORD")
DEBUG_VARIABLE = re.compile(rf"^[ \t]*DEBUG\s*=.*?{READ_VARIABLE}", re.MULTILINE)
DEBUG_IS_ON = re.compile(r"^[ \t]*DEBUG\s*=\s*True\b", re.MULTILINE)
ANY_NAME = re.compile(r"""["']\.?([\w-]+(?:\.[\w-]+)+)["']""")
SEEDS = (
    *("seed", "seed_db", "seed_data", "populate", "populate_db", "load_demo", "demo_data"),
    *("load_initial_data", "initial_data", "create_demo_data", "create_db", "init_db"),
)
MOST_PATHS = 12


class _DjangoSettings(NamedTuple):
    module: str
    text: str
    """Of the module, and of those that it takes everything from."""


def find_django(folder: Path, how: Installing) -> FoundApp | None:
    """Find the project of a manage.py, at the top or in a folder; None where there is none."""
    manages = [folder / "manage.py", *sorted(folder.glob("*/manage.py"))]
    manage = next((manage for manage in manages if manage.is_file()), None)
    match = SETTINGS_MODULE.search(read_text(manage) or "") if manage else None
    if manage is None or match is None:
        return None
    top = manage.parent
    settings, notes = _django_settings(top, match[1])
    module = _wsgi(top, settings)
    has_server = "gunicorn" in how.needs
    how = how.with_package("gunicorn")
    inside = top.relative_to(folder).as_posix()
    chdir = "" if inside == "." else f"--chdir {inside} "
    environment = dict(_django_environment(settings.text))
    if settings.module != match[1]:
        environment["DJANGO_SETTINGS_MODULE"] = settings.module
    program = f".venv/bin/python {manage.relative_to(folder).as_posix()}"
    build = how.build
    if "STATIC_ROOT" in settings.text:
        build += f" && {program} collectstatic --noinput {QUIETLY}"
    commands = ("*/management/commands/*.py", "*/*/management/commands/*.py")
    own = {path.stem for pattern in commands for path in top.glob(pattern)}
    seed = next((name for name in SEEDS if name in own), None)
    urls = sorted((top / settings.module.partition(".")[0]).glob("**/urls.py"))[:1]
    names = DJANGO_PATH.findall(read_text(urls[0]) or "") if urls else []
    paths = tuple(dict.fromkeys(f"/{name}" for name in names))[:MOST_PATHS]
    served = "Gunicorn serves it: `manage.py runserver` is for development"
    return FoundApp(
        how.by,
        f".venv/bin/gunicorn {chdir}{module} --bind 127.0.0.1:$PORT",
        build,
        prepare=f"{program} migrate --noinput {QUIETLY}",
        setup=f"{program} {seed} {QUIETLY}" if seed else None,
        environment=environment,
        headers=_django_headers(settings.text),
        paths=paths or ("/",),
        notes=(served, *notes, *(() if has_server else how.notes)),
        doubts=tuple(_django_doubts(settings, environment)),
    )


def _django_settings(top: Path, usual: str) -> tuple[_DjangoSettings, list[str]]:
    above = usual.rpartition(".")[0]
    names = [f"{usual}.{name}" for name in PRODUCTION]
    names += [f"{above}.{name}" if above else name for name in PRODUCTION]
    chosen = next((name for name in names if _module_text(top, name) is not None), usual)
    notes = [f"{chosen} holds its settings, not {usual}"] if chosen != usual else []
    text = _module_text(top, chosen) or ""
    package = chosen.rpartition(".")[0]
    others = re.findall(r"^from \.(\w+) import \*", text, re.MULTILINE)
    texts = [text, *(_module_text(top, f"{package}.{other}") or "" for other in others)]
    return _DjangoSettings(chosen, "\n".join(texts)), notes


def _module_text(top: Path, module: str) -> str | None:
    place = top.joinpath(*module.split("."))
    text = read_text(place.with_suffix(".py"))
    return read_text(place / "__init__.py") if text is None else text


def _wsgi(top: Path, settings: _DjangoSettings) -> str:
    match = re.search(r"""WSGI_APPLICATION\s*=\s*["']([\w.]+)\.\w+["']""", settings.text)
    if match:
        return match[1]
    places = sorted(top.glob("*/wsgi.py"))
    package = places[0].parent.name if places else settings.module.partition(".")[0]
    return f"{package}.wsgi"


def _django_environment(text: str) -> Iterator[tuple[str, str]]:
    """Return the variables that have it serve as in production, at this address."""
    hosts = ALLOWED_HOSTS.search(text)
    debug = DEBUG_VARIABLE.search(text)
    if debug and "DEBUG" in debug[1].upper() and not _answers_nobody(hosts):
        yield debug[1], "False"
    if hosts and (match := re.search(READ_VARIABLE, hosts["said"])):
        yield match[1], "127.0.0.1,localhost"
    for match in WANTED_VARIABLE.finditer(text):
        is_looked_for = re.search(rf"[\"']{match['name']}[\"'] in ", text)
        if OF_SECRET.search(match["name"]) and not is_looked_for:
            yield match["name"], FOR_MEASURING


def _answers_nobody(hosts: re.Match[str] | None) -> bool:
    """Whether no host is allowed; in development Django adds this machine by itself."""
    return hosts is not None and bool(re.match(r"\s*\[\s*\]", hosts["said"]))


def _django_headers(text: str) -> dict[str, str]:
    """Return the host that it answers to, where that isn't its address."""
    hosts = ALLOWED_HOSTS.search(text)
    listed = hosts["said"] if hosts else ""
    is_open = THIS_HOST.search(listed) or re.search(READ_VARIABLE, listed)
    name = ANY_NAME.search(listed)
    return {"Host": name[1]} if name and not is_open else {}


def _django_doubts(settings: _DjangoSettings, environment: dict[str, str]) -> Iterator[str]:
    if DEBUG_IS_ON.search(settings.text):
        yield f"DEBUG is True in {settings.module}: it is slower than in production"
    if _answers_nobody(ALLOWED_HOSTS.search(settings.text)) and not DEBUG_IS_ON.search(
        settings.text
    ):
        yield "ALLOWED_HOSTS is empty: add 127.0.0.1 to it, or every response is 400"
    wanted = {match["name"] for match in WANTED_VARIABLE.finditer(settings.text)}
    required = wanted - environment.keys() - OF_SERVICES
    lacking = {name for name in required if not NAMED.fullmatch(name)}
    if lacking:
        names = ", ".join(sorted(lacking))
        yield f"its settings want {names}: add them as environment.NAME below [app]"
