"""Finds out from a folder's files how the application in it is built, started and asked.

Each kind of file is read by one function; the first that tells how to start wins: what people wrote
for that purpose (Procfile) before what can be guessed from a language's files.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

MOST_FILES = 300
MOST_BYTES = 200_000
MOST_PATHS = 6
SKIPPED = {"node_modules", "vendor", "venv", "__pycache__", "test", "tests", "dist", "build"}
SOURCES = {".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".rb", ".ru"}
ROUTES = re.compile(
    r"""(?:\.(?:get|route)\(|HandleFunc\(|\bget|\bwhen)\s*["'](?:GET )?(/[\w./-]*)(?:\{\$\})?["']"""
)
"""Flask, FastAPI, Express, net/http, Sinatra and Rack: paths without parameters that a GET asks."""
PYTHON_APP = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(Flask|FastAPI|Starlette)\(", re.MULTILINE)
SERVERS_OF_VENV = re.compile(r"(gunicorn|uvicorn|hypercorn|waitress-serve|daphne|flask|python3?)\b")
UNHEARD_PORT = "nothing here mentions PORT, the variable with the port that it has to listen on"
LISTEN = {"gunicorn": "--bind 127.0.0.1:$PORT", "uvicorn": "--host 127.0.0.1 --port $PORT"}
PYTHON_QUEUE = 4
"""Connections that Python's own server surely takes at once: it lets no more than five wait."""
IN_VENV = "python3 -m venv .venv && .venv/bin/pip install --quiet "


@dataclass(frozen=True)
class FoundApp:
    """What was found, and by which file."""

    by: str
    start: str | None
    """None where only the user can tell."""
    build: str | None = None
    paths: tuple[str, ...] = ("/",)
    doubts: tuple[str, ...] = field(default=())
    """What may be wrong about it, as sentences."""
    connections: int | None = None
    """So many its server takes at once; None where there is nothing to heed."""


def find_app(folder: Path) -> FoundApp | None:
    """Look at a folder; None where nothing in it is known to serve HTTP."""
    for reader in READERS:
        if found := reader(folder):
            if found.paths == ("/",):
                found = replace(found, paths=tuple(_paths(folder)) or ("/",))
            if found.start and not _heeds_port(folder, found.start):
                found = replace(found, doubts=(*found.doubts, UNHEARD_PORT))
            return found
    return None


def _heeds_port(folder: Path, start: str) -> bool:
    return "PORT" in start or any("PORT" in (_read(path) or "") for path in _sources(folder))


def _procfile(folder: Path) -> FoundApp | None:
    text = _read(folder / "Procfile")
    line = re.search(r"^web:\s*(\S.*?)\s*$", text, re.MULTILINE) if text else None
    if line is None:
        return None
    build, start = _build_of(folder), line[1]
    if build and build.startswith(IN_VENV) and SERVERS_OF_VENV.match(start):
        start = f".venv/bin/{start}"
    return FoundApp("Procfile", start, build)


def _build_of(folder: Path) -> str | None:
    guesses = (_node(folder), _ruby(folder))
    others = (it.build for it in guesses if it and it.build)
    python = _python_build(folder)
    return python[1] if python else next(others, None)


def _python_build(folder: Path) -> tuple[str, str] | None:
    """Name the file that lists what a Python application needs, and how to install that."""
    for name, installed in (("requirements.txt", "-r requirements.txt"), ("pyproject.toml", ".")):
        if (folder / name).is_file():
            return name, IN_VENV + installed
    return None


def _python(folder: Path) -> FoundApp | None:
    described = _python_build(folder)
    if described is None:
        return None
    name, build = described
    needs = _python_needs(folder)
    app = next(_python_apps(folder), None)
    if app is None:
        return FoundApp(name, None, build) if needs & {"flask", "fastapi", "django"} else None
    where, kind = app
    server = "gunicorn" if kind == "Flask" else "uvicorn"
    start = f".venv/bin/{server} {where} {LISTEN[server]}"
    if server in needs:
        return FoundApp(name, start, build)
    doubt = f"{name} names no {server}; it is installed beside the rest"
    return FoundApp(name, start, f"{build} {server}", doubts=(doubt,))


def _python_needs(folder: Path) -> set[str]:
    lines = (_read(folder / "requirements.txt") or "").splitlines()
    try:
        project = tomllib.loads(_read(folder / "pyproject.toml") or "").get("project", {})
    except tomllib.TOMLDecodeError:
        project = {}
    declared = project.get("dependencies", []) if isinstance(project, dict) else []
    lines += [it for it in declared if isinstance(it, str)] if isinstance(declared, list) else []
    names = (re.match(r"\s*([\w.-]+)", line) for line in lines)
    return {name[1].lower() for name in names if name}


def _python_apps(folder: Path) -> Iterator[tuple[str, str]]:
    """Give `module:object` and the framework of every application object."""
    for path in _sources(folder):
        if path.suffix == ".py":
            for found in PYTHON_APP.finditer(_read(path) or ""):
                module = ".".join(path.relative_to(folder).with_suffix("").parts)
                yield f"{module.removesuffix('.__init__')}:{found[1]}", found[2]


def _node(folder: Path) -> FoundApp | None:
    text = _read(folder / "package.json")
    if text is None:
        return None
    try:
        package = json.loads(text)
    except ValueError:
        package = {}
    package = package if isinstance(package, dict) else {}
    scripts = package.get("scripts")
    start = scripts.get("start") if isinstance(scripts, dict) else None
    if not isinstance(start, str):
        main = package.get("main", "server.js")
        start = f"node {main}" if isinstance(main, str) and (folder / main).is_file() else None
    # Not "npm ci": it fails in revisions without a lock file, which this one minds as well.
    steps = ["npm install --silent"] if package.get("dependencies") else []
    if isinstance(scripts, dict) and "build" in scripts:
        steps.append("npm run build")
    return FoundApp("package.json", start, " && ".join(steps) or None)


def _go(folder: Path) -> FoundApp | None:
    if not (folder / "go.mod").is_file():
        return None
    mains = [path for path in _sources(folder) if _is_go_main(path)]
    folders = sorted({path.parent.relative_to(folder).as_posix() for path in mains})
    if not folders:
        return FoundApp("go.mod", None)
    package = "." if folders[0] == "." else f"./{folders[0]}"
    doubts = (f"there are {len(folders)} programs: {', '.join(folders)}",) if folders[1:] else ()
    return FoundApp("go.mod", "./server", f"go build -o server {package}", doubts=doubts)


def _is_go_main(path: Path) -> bool:
    return path.suffix == ".go" and "\npackage main" in f"\n{_read(path)}"


def _ruby(folder: Path) -> FoundApp | None:
    if not (folder / "config.ru").is_file():
        return None
    bundled = (folder / "Gemfile").is_file()
    start = "puma --bind tcp://127.0.0.1:$PORT config.ru"
    build = "bundle config set --local path .bundle && bundle install --quiet" if bundled else None
    return FoundApp("config.ru", f"bundle exec {start}" if bundled else start, build)


def _dockerfile(folder: Path) -> FoundApp | None:
    """Take the command of an image; what it installs is the user's to say."""
    name = next((it for it in ("Dockerfile", "Containerfile") if (folder / it).is_file()), None)
    if name is None:
        return None
    found = re.findall(r"^CMD\s+(.+?)\s*$", _read(folder / name) or "", re.MULTILINE)
    start = _exec_form(found[-1]) if found else None
    said = f"{name} says how an image is built; here the command runs without one"
    return FoundApp(name, start, doubts=(said,))


def _compose(folder: Path) -> FoundApp | None:
    names = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
    name = next((it for it in names if (folder / it).is_file()), None)
    said = f"{name} has services; which of them is asked, and how it starts without an image?"
    return FoundApp(name, None, doubts=(said,)) if name else None


def _exec_form(command: str) -> str:
    try:
        words = json.loads(command)
    except ValueError:
        return command
    return " ".join(map(str, words)) if isinstance(words, list) else command


def _pages(folder: Path) -> FoundApp | None:
    for inner in (".", "public", "html", "www", "site", "_site", "dist"):
        if (folder / inner / "index.html").is_file():
            pages = sorted(it.name for it in (folder / inner).glob("*.html"))
            paths = ("/", *(f"/{it}" for it in pages if it != "index.html"))[:MOST_PATHS]
            server = "python3 -m http.server $PORT --bind 127.0.0.1"
            where = "" if inner == "." else f" --directory {inner}"
            return FoundApp(
                f"{inner}/index.html".removeprefix("./"),
                f"{server}{where}",
                paths=paths,
                connections=PYTHON_QUEUE,
            )
    return None


READERS: Sequence[Callable[[Path], FoundApp | None]] = (
    _procfile,
    _python,
    _node,
    _go,
    _ruby,
    _dockerfile,
    _compose,
    _pages,
)


def _paths(folder: Path) -> list[str]:
    """Give the paths that the sources name, in their order; a few of them."""
    found: dict[str, None] = {}
    for path in _sources(folder):
        found |= dict.fromkeys(ROUTES.findall(_read(path) or ""))
    return list(found)[:MOST_PATHS]


def _sources(folder: Path) -> list[Path]:
    """List files of source text, those at the top first; hidden folders and tests are left out."""
    found: list[Path] = []
    folders = [folder]
    while folders and len(found) < MOST_FILES:
        here = folders.pop(0)
        inside = sorted(here.iterdir())
        found += [it for it in inside if it.suffix in SOURCES and it.is_file()]
        folders += [it for it in inside if _is_of_interest(it)]
    return found[:MOST_FILES]


def _is_of_interest(path: Path) -> bool:
    hidden = path.name.startswith(".") or path.name in SKIPPED
    return path.is_dir() and not path.is_symlink() and not hidden


def _read(path: Path) -> str | None:
    """Give a file's text; None where there is none that can be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
