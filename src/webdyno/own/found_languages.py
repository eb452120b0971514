"""Applications known by a Procfile, or by the files of Python, Ruby and Node."""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w

from webdyno.own.found import MOST_PATHS, FoundApp, first_of, read_text, sources

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
PACKAGE = "package.json"
MOST_PACKAGES = 100
INSTALLS = {
    # Not "npm ci": it fails in revisions without a lock file, which this one minds as well.
    "npm": "npm install --silent",
    "pnpm": "pnpm install --prefer-frozen-lockfile",
    "yarn": "yarn install",
    "bun": "bun install",
}
LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}
OF_MEMBER = {
    "npm": "npm start --silent --workspace {name}",
    "pnpm": "pnpm --filter {name} start",
    "yarn": "yarn workspace {name} start",
    "bun": "bun run --filter {name} start",
}
DIRECT = {"node", "bun", "deno", *INSTALLS}
"""Programs that need no script's PATH; a shell whose line is one command becomes it."""
NEXT = re.compile(r"\bnext start\b")
LISTENS_BY_ITSELF = re.compile(
    r"\b(?:next start|nuxt|\.output/server|react-router-serve|remix-serve)\b"
)
NODE_ENV = (
    "NODE_ENV isn't set to production, so libraries may run as in development; "
    'write start = "NODE_ENV=production …"'
)
NEXT_IDS = (
    "Next writes an id of the build into its pages, so those of two revisions differ: "
    "give generateBuildId a fixed one, or use --ignore"
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
    return f"{name} names no {server}; it is installed with the rest"


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


def node(folder: Path) -> FoundApp | None:
    """Read the scripts of package.json, and those of a workspace's packages."""
    package = _package(folder)
    if package is None:
        return None
    manager = _manager(folder, package)
    scripts = _table(package, "scripts")
    members = dict(_members(folder, package))
    build = _build(package, manager, bool(members))
    app = FoundApp(PACKAGE, _start(folder, package, manager), build)
    if app.start is None:
        return _of_members(app, members, manager)
    of_members = (_table(member, "scripts") for member in members.values())
    said = " ".join(str(it) for table in (scripts, *of_members) for it in table.values())
    return _completed(app, folder, manager, said)


def _of_members(app: FoundApp, members: Mapping[str, dict[str, Any]], manager: str) -> FoundApp:
    """Choose among a workspace's packages those that have a start script."""
    starts = {
        name: replace(app, start=OF_MEMBER[manager].format(name=name), heeds_port=_heeds(it))
        for name, it in members.items()
        if isinstance(_table(it, "scripts").get("start"), str)
    }
    if len(starts) == 1:
        return next(iter(starts.values()))
    several = f"{PACKAGE} has several packages that start" if starts else ""
    return replace(app, several=several, choices=starts)


def _completed(app: FoundApp, folder: Path, manager: str, said: str) -> FoundApp:
    doubts = list(app.doubts)
    if shutil.which(manager) is None:
        doubts.append(f"{manager} isn't installed here: corepack enable {manager}, or its package")
    is_next = bool(NEXT.search(said))
    if is_next:
        doubts.append(NEXT_IDS)
    elif "NODE_ENV" not in said:
        doubts.append(NODE_ENV)
    paths = tuple(sorted(set(_next_paths(folder))))[:MOST_PATHS] if is_next else ()
    heeds = bool(LISTENS_BY_ITSELF.search(said))
    return replace(app, doubts=tuple(doubts), paths=paths or app.paths, heeds_port=heeds)


def _heeds(package: Mapping[str, Any]) -> bool:
    return bool(LISTENS_BY_ITSELF.search(str(_table(package, "scripts").get("start"))))


def _package(folder: Path) -> dict[str, Any] | None:
    text = read_text(folder / PACKAGE)
    if text is None:
        return None
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        package = {}
    return package if isinstance(package, dict) else {}


def _table(package: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = package.get(key)
    return table if isinstance(table, dict) else {}


def _manager(folder: Path, package: Mapping[str, Any]) -> str:
    said = str(package.get("packageManager", "")).partition("@")[0]
    lock = first_of(folder, *LOCK_FILES)
    return said if said in INSTALLS else LOCK_FILES[lock] if lock else "npm"


def _build(package: Mapping[str, Any], manager: str, is_workspace: bool) -> str | None:
    needs = _table(package, "dependencies") or _table(package, "devDependencies")
    steps = [INSTALLS[manager]] if needs or is_workspace else []
    if "build" in _table(package, "scripts"):
        steps.append(f"{manager} run build")
    return " && ".join(steps) or None


def _start(folder: Path, package: Mapping[str, Any], manager: str) -> str | None:
    script = _table(package, "scripts").get("start")
    if isinstance(script, str):
        words = script.split()
        is_direct = bool(words) and (words[0] in DIRECT or "=" in words[0])
        return script if is_direct else f"{manager} start"
    main = package.get("main", "server.js")
    return f"node {main}" if isinstance(main, str) and (folder / main).is_file() else None


def _members(folder: Path, package: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the packages of a workspace, by name."""
    said = package.get("workspaces")
    patterns = said.get("packages") if isinstance(said, dict) else said
    if text := read_text(folder / "pnpm-workspace.yaml"):
        patterns = re.findall(r"""^\s*-\s*["']?([\w@./*-]+)["']?\s*$""", text, re.MULTILINE)
    found = 0
    for pattern in patterns if isinstance(patterns, list) else ():
        for path in _matching(folder, str(pattern)):
            member = _package(path)
            if member and found < MOST_PACKAGES:
                found += 1
                yield str(member.get("name", path.name)), member


def _matching(folder: Path, pattern: str) -> list[Path]:
    if pattern.startswith(("/", "!")) or ".." in pattern or not pattern.strip("./"):
        return []
    try:
        return sorted(folder.glob(pattern.rstrip("/")))
    except (ValueError, NotImplementedError):
        return []


def _next_paths(folder: Path) -> Iterator[str]:
    """Give the paths of Next's `app` folders, without those that have parameters."""
    for app in (*folder.glob("app"), *folder.glob("src/app"), *folder.glob("*/*/app")):
        for file in sorted((*app.rglob("page.*"), *app.rglob("route.*")))[:MOST_PACKAGES]:
            parts = file.parent.relative_to(app).parts
            if "node_modules" in file.parts or any(it.startswith(("[", "@", "_")) for it in parts):
                continue
            yield "/" + "/".join(it for it in parts if not it.startswith("("))
