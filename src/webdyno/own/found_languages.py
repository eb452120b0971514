"""Applications known by a Procfile, or by the files of Python, JavaScript, Go and Ruby."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.own.found import FoundApp, read_text, sources

PYTHON_APP = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(Flask|FastAPI|Starlette)\(", re.MULTILINE)
SERVERS_OF_VENV = re.compile(r"(gunicorn|uvicorn|hypercorn|waitress-serve|daphne|flask|python3?)\b")
LISTEN = {"gunicorn": "--bind 127.0.0.1:$PORT", "uvicorn": "--host 127.0.0.1 --port $PORT"}
IN_VENV = "python3 -m venv .venv && .venv/bin/pip install --quiet "


def procfile(folder: Path) -> FoundApp | None:
    """Read what people wrote for this purpose: the line `web:`."""
    text = read_text(folder / "Procfile")
    line = re.search(r"^web:\s*(\S.*?)\s*$", text, re.MULTILINE) if text else None
    if line is None:
        return None
    build, start = _build_of(folder), line[1]
    if build and build.startswith(IN_VENV) and SERVERS_OF_VENV.match(start):
        start = f".venv/bin/{start}"
    return FoundApp("Procfile", start, build)


def _build_of(folder: Path) -> str | None:
    guesses = (node(folder), ruby(folder))
    others = (it.build for it in guesses if it and it.build)
    described = _python_build(folder)
    return described[1] if described else next(others, None)


def _python_build(folder: Path) -> tuple[str, str] | None:
    """Name the file that lists what a Python application needs, and how to install that."""
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
    lines = (read_text(folder / "requirements.txt") or "").splitlines()
    try:
        project = tomllib.loads(read_text(folder / "pyproject.toml") or "").get("project", {})
    except tomllib.TOMLDecodeError:
        project = {}
    declared = project.get("dependencies", []) if isinstance(project, dict) else []
    lines += [it for it in declared if isinstance(it, str)] if isinstance(declared, list) else []
    names = (re.match(r"\s*([\w.-]+)", line) for line in lines)
    return {name[1].lower() for name in names if name}


def _python_apps(folder: Path) -> Iterator[tuple[str, str]]:
    """Give `module:object` and the framework of every application object."""
    for path in sources(folder):
        if path.suffix == ".py":
            for found in PYTHON_APP.finditer(read_text(path) or ""):
                module = ".".join(path.relative_to(folder).with_suffix("").parts)
                yield f"{module.removesuffix('.__init__')}:{found[1]}", found[2]


def node(folder: Path) -> FoundApp | None:
    """Read the scripts of package.json."""
    text = read_text(folder / "package.json")
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


def go(folder: Path) -> FoundApp | None:
    """Find the programs of a module."""
    if not (folder / "go.mod").is_file():
        return None
    mains = [path for path in sources(folder) if _is_go_main(path)]
    folders = sorted({path.parent.relative_to(folder).as_posix() for path in mains})
    if not folders:
        return FoundApp("go.mod", None)
    programs = {it: _go_program(it) for it in folders}
    if len(folders) == 1:
        return programs[folders[0]]
    doubt = f"there are {len(folders)} programs: {', '.join(folders)}"
    first = replace(programs[folders[0]], doubts=(doubt,))
    return replace(first, several="go.mod has several programs", choices=programs)


def _go_program(folder: str) -> FoundApp:
    package = "." if folder == "." else f"./{folder}"
    return FoundApp("go.mod", "./server", f"go build -o server {package}")


def _is_go_main(path: Path) -> bool:
    return path.suffix == ".go" and "\npackage main" in f"\n{read_text(path)}"


def ruby(folder: Path) -> FoundApp | None:
    """Start config.ru under puma."""
    if not (folder / "config.ru").is_file():
        return None
    bundled = (folder / "Gemfile").is_file()
    start = "puma --bind tcp://127.0.0.1:$PORT config.ru"
    build = "bundle config set --local path .bundle && bundle install --quiet" if bundled else None
    return FoundApp("config.ru", f"bundle exec {start}" if bundled else start, build)
