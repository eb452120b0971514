"""Applications known by a Procfile, or by the files of Python and Ruby."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import tomli_w

from webdyno.own.found import MOST_PATHS, FoundApp, first_of, read_text, sources
from webdyno.own.found_node import node

PYTHON_APP = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(Flask|FastAPI|Starlette)\(", re.MULTILINE)
SERVERS_OF_VENV = re.compile(r"(gunicorn|uvicorn|hypercorn|waitress-serve|daphne|flask|python3?)\b")
LISTEN = {"gunicorn": "--bind 127.0.0.1:$PORT", "uvicorn": "--host 127.0.0.1 --port $PORT"}
IN_VENV = "python3 -m venv .venv && .venv/bin/pip install --quiet "
TOOLS = {
    "uv.lock": ("uv sync --quiet --frozen", "uv pip install --quiet"),
    "poetry.lock": (
        "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --quiet --no-interaction --no-root",
        ".venv/bin/python -m pip install --quiet",
    ),
    "Pipfile.lock": (
        "PIPENV_VENV_IN_PROJECT=1 pipenv sync",
        ".venv/bin/python -m pip install --quiet",
    ),
}
"""By lock file: how its tool makes .venv, and how something is added there."""
THRUSTER = re.compile(r"\bthrust(?:er)?\b")
THRUSTER_OFFSET = 32_768
"""To a port that nobody has: webdyno's own are below that."""
SETTINGS_MODULE = re.compile(r"""DJANGO_SETTINGS_MODULE["'],\s*["']([\w.]+)["']""")
DJANGO_PATH = re.compile(
    r"""^\s*path\(\s*["']([\w./-]*)["']\s*,(?!\s*(?:include|admin))""", re.MULTILINE
)


def procfile(folder: Path) -> FoundApp | None:
    """Read what people wrote for this purpose: the line `web:`."""
    text = read_text(folder / "Procfile") or ""
    lines = dict(re.findall(r"^([\w-]+):[ \t]*(\S.*?)[ \t\r]*$", text, re.MULTILINE))
    if "web" not in lines:
        return None
    build, start = _build_of(folder), lines["web"]
    if build and ".venv" in build and SERVERS_OF_VENV.match(start):
        start = f".venv/bin/{start}"
    doubts = list(_rails_doubts(folder))
    if release := lines.get("release"):
        prepare = tomli_w.dumps({"prepare": release}).strip()
        doubts.append(f"`release` of Procfile isn't run; this runs it before each start: {prepare}")
    if THRUSTER.search(start):
        start = f"HTTP_PORT=$PORT TARGET_PORT=$((PORT + {THRUSTER_OFFSET})) {start}"
        doubts.append("Thruster listens on HTTP_PORT, and its server on TARGET_PORT behind it")
    return FoundApp("Procfile", start, build, doubts=tuple(doubts))


def _build_of(folder: Path) -> str | None:
    guesses = (node(folder), ruby(folder))
    others = (it.build for it in guesses if it and it.build)
    described = _python_build(folder)
    return described[1] if described else next(others, None)


def _python_build(folder: Path) -> tuple[str, str] | None:
    """Name the file that lists what a Python application needs, and how to install that."""
    if lock := first_of(folder, *TOOLS):
        return lock, TOOLS[lock][0]
    for name, installed in (("requirements.txt", "-r requirements.txt"), ("pyproject.toml", ".")):
        if (folder / name).is_file():
            return name, IN_VENV + installed
    return None


def python(folder: Path) -> FoundApp | None:
    """Find the application object, and the server for its framework."""
    described = _python_build(folder)
    if described is None:
        return None
    name, build = described
    needs = _python_needs(folder)
    if (folder / "manage.py").is_file() and (settings := _django_settings(folder)):
        return _django(folder, settings, name, build, "gunicorn" in needs)
    app = next(_python_apps(folder), None)
    if app is None:
        return FoundApp(name, None, build) if needs & {"flask", "fastapi", "django"} else None
    where, kind = app
    server = "gunicorn" if kind == "Flask" else "uvicorn"
    start = f".venv/bin/{server} {where} {LISTEN[server]}"
    if server in needs:
        return FoundApp(name, start, build)
    return FoundApp(name, start, _with(build, name, server), doubts=(_added(name, server),))


def _with(build: str, name: str, server: str) -> str:
    """Have a server installed that the application doesn't ask for."""
    return f"{build} && {TOOLS[name][1]} {server}" if name in TOOLS else f"{build} {server}"


def _added(name: str, server: str) -> str:
    return f"{name} names no {server}; it is installed beside the rest"


def _django_settings(folder: Path) -> str | None:
    found = SETTINGS_MODULE.search(read_text(folder / "manage.py") or "")
    return found[1] if found else None


def _django(folder: Path, settings: str, name: str, build: str, has_server: bool) -> FoundApp:
    package = settings.partition(".")[0]
    start = f".venv/bin/gunicorn {package}.wsgi {LISTEN['gunicorn']}"
    place = folder.joinpath(*settings.split("."))
    text = read_text(place.with_suffix(".py")) or ""
    doubts = [] if has_server else [_added(name, "gunicorn")]
    if re.search(r"^DEBUG\s*=\s*True", text, re.MULTILINE):
        doubts.append(f"DEBUG is True in {settings}: nothing is served like that in production")
    if "ALLOWED_HOSTS" in text and not re.search(r"""127\.0\.0\.1|["']\*["']""", text):
        doubts.append("ALLOWED_HOSTS lacks 127.0.0.1, by which it is asked")
    doubts.append(
        "a database begins as the last start left it; this runs before each start: "
        'prepare = ".venv/bin/python manage.py migrate"'
    )
    found = DJANGO_PATH.findall(read_text(folder / package / "urls.py") or "")
    paths = tuple(dict.fromkeys(f"/{it}" for it in found))[:MOST_PATHS]
    whole = build if has_server else _with(build, name, "gunicorn")
    return FoundApp(name, start, whole, paths or ("/",), tuple(doubts))


def _python_needs(folder: Path) -> set[str]:
    lines = (read_text(folder / "requirements.txt") or "").splitlines()
    try:
        data = tomllib.loads(read_text(folder / "pyproject.toml") or "")
    except (tomllib.TOMLDecodeError, RecursionError):
        data = {}
    project = data.get("project", {})
    declared = project.get("dependencies", []) if isinstance(project, dict) else []
    lines += [it for it in declared if isinstance(it, str)] if isinstance(declared, list) else []
    for table in ("tool", "poetry", "dependencies"):
        data = data.get(table, {}) if isinstance(data, dict) else {}
    lines += data if isinstance(data, dict) else []
    names = (re.match(r"\s*([\w.-]+)", line) for line in lines)
    return {name[1].lower() for name in names if name}


def _python_apps(folder: Path) -> Iterator[tuple[str, str]]:
    """Give `module:object` and the framework of every application object."""
    for path in sources(folder):
        if path.suffix == ".py":
            for found in PYTHON_APP.finditer(read_text(path) or ""):
                module = ".".join(path.relative_to(folder).with_suffix("").parts)
                yield f"{module.removesuffix('.__init__')}:{found[1]}", found[2]


def ruby(folder: Path) -> FoundApp | None:
    """Start config.ru under puma."""
    if not (folder / "config.ru").is_file():
        return None
    bundled = (folder / "Gemfile").is_file()
    start = "puma --bind tcp://127.0.0.1:$PORT config.ru"
    build = "bundle config set --local path .bundle && bundle install --quiet" if bundled else None
    return FoundApp(
        "config.ru",
        f"bundle exec {start}" if bundled else start,
        build,
        paths=tuple(_rails_paths(folder)) or ("/",),
        doubts=tuple(_rails_doubts(folder)),
    )


def _rails_paths(folder: Path) -> list[str]:
    routes = read_text(folder / "config/routes.rb") or ""
    found = re.findall(r"""^\s*get\s+["']/?([\w./-]+)["']""", routes, re.MULTILINE)
    return list(dict.fromkeys(f"/{it}" for it in found))[:MOST_PATHS]


def _rails_doubts(folder: Path) -> Iterator[str]:
    if re.search(r"""^\s*gem\s+["']rails["']""", read_text(folder / "Gemfile") or "", re.MULTILINE):
        yield (
            "RAILS_ENV is development unless set: "
            'environment = { RAILS_ENV = "production", SECRET_KEY_BASE = "…" }'
        )
