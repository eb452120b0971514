"""What a Python application needs, and the command that installs it into `.venv`."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webdyno.core.errors import OperationError
from webdyno.core.tables import as_list, as_table, json_table, read_text, read_toml, table
from webdyno.host.children import run_program
from webdyno.systems.layouts.app import FoundApp, Hindrance, first_of

VENV = "python3 -m venv .venv"
PIP = ".venv/bin/python -m pip install --quiet"
IN_VENV = f"{VENV} && .venv/bin/pip install --quiet"
UV, POETRY, PIPENV = "uv", "poetry", "pipenv"
LOCKS = {"uv.lock": UV, "poetry.lock": POETRY, "Pipfile.lock": PIPENV}
STEPS = {
    (UV, True): "uv sync --quiet --frozen",
    (UV, False): "uv sync --quiet",
    (POETRY, True): "poetry install --no-interaction --no-root",
    (POETRY, False): "poetry install --no-interaction --no-root",
    (PIPENV, True): "pipenv sync",
    (PIPENV, False): "pipenv install",
}
"""By tool, and by whether there is a lock file: what installs."""
ENVIRONMENT_HERE = 'UV_PROJECT_ENVIRONMENT="$PWD/.venv" '
"""A member of a workspace would have its environment at the top."""
DEEPEST_MEMBER = 2
IN_PROJECT = {POETRY: "POETRY_VIRTUALENVS_IN_PROJECT=1 ", PIPENV: "PIPENV_VENV_IN_PROJECT=1 "}
ADDS = {UV: "uv pip install --quiet"}
"""By tool: how something is added to its `.venv`, where pip isn't in there."""
REQUIREMENTS = (
    *("requirements/production.txt", "requirements/prod.txt", "requirements-prod.txt"),
    *("requirements.txt", "requirements/base.txt", "requirements/requirements.txt"),
)
"""Those for production first."""
WITH_SERVER = re.compile(r"fastapi(?:-slim)?\s*\[[^\[\]]*(?:standard|all)", re.IGNORECASE)
NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
LOCKED = re.compile(r'^name = "([\w.-]+)"', re.MULTILINE)
MOST_INCLUDED = 10
MAKES_VENV = re.compile(r"\.venv|\buv sync|(?:_VENV_|_VIRTUALENVS_)IN_PROJECT")


def makes_venv(build: str | None) -> bool:
    """Whether a command makes a `.venv`."""
    return build is not None and MAKES_VENV.search(build) is not None


class Installing(NamedTuple):
    """How a Python application is installed."""

    by: str
    """The file that lists what it needs."""
    build: str
    adds: str
    """What installs something further behind it."""
    needs: frozenset[str]
    """The packages that are named, in small letters."""
    notes: tuple[str, ...] = ()

    def with_package(self, name: str) -> "Installing":
        """Have a package installed as well, if it isn't."""
        if name in self.needs:
            return self
        # "pip install -r requirements.txt" takes further names as they are
        joined = f" {name}" if self.adds == PIP and self.build.startswith(IN_VENV) else ""
        return self._replace(
            build=f"{self.build}{joined}" if joined else f"{self.build} && {self.adds} {name}",
            notes=(*self.notes, f"{self.by} names no {name}; it is installed with the rest"),
        )


def is_workspace(folder: Path) -> bool:
    """Whether uv keeps several packages in a folder."""
    return bool(table(read_toml(folder / "pyproject.toml") or {}, "tool", "uv", "workspace"))


def installing(folder: Path) -> Installing | None:
    """Return how a Python application is installed; None where no file lists what it needs."""
    needs = frozenset(_needs(folder))
    project = read_toml(folder / "pyproject.toml")
    if (lock := first_of(folder, *LOCKS)) is not None:
        how = _by_tool(lock, LOCKS[lock], True, needs)
        return how._replace(build=f"{how.build} --all-packages") if is_workspace(folder) else how
    above = (parent for parent in list(folder.parents)[:DEEPEST_MEMBER] if is_workspace(parent))
    if project and (top := next(above, None)) and (top / "uv.lock").is_file():
        locked = {name.lower() for name in LOCKED.findall(read_text(top / "uv.lock") or "")}
        return _by_tool("pyproject.toml", UV, True, needs | locked, ENVIRONMENT_HERE)
    of_heroku = (folder / "Procfile").is_file() and (folder / "requirements.txt").is_file()
    if of_heroku:
        return Installing("requirements.txt", f"{IN_VENV} -r requirements.txt", PIP, needs)
    if (folder / "Pipfile").is_file():
        return _by_tool("Pipfile", PIPENV, False, needs)
    if project and table(project, "tool", "poetry"):
        return _by_tool("pyproject.toml", POETRY, False, needs)
    if project and "build-system" not in project and table(project, "project"):
        return _by_tool("pyproject.toml", UV, False, needs)
    if name := first_of(folder, *REQUIREMENTS):
        return Installing(name, f"{IN_VENV} -r {name}", PIP, needs)
    if name := list_of_image(folder):
        return Installing(name, f"{IN_VENV} -r {name}", PIP, needs | {*_named_in(folder / name)})
    if name := first_of(folder, "pyproject.toml", "setup.py", "setup.cfg"):
        return Installing(name, f"{IN_VENV} .", PIP, needs)
    return None


OF_PIP = re.compile(
    r"\bpip3? install[^\n]{0,300}? (?:-r|--requirement)[ =]?(?P<list>[\w./-]+\.txt)"
)
PLACES = ("", "infra/", "docker/", "deploy/")
"""Of lists that an image has elsewhere."""


def list_of_image(folder: Path) -> str | None:
    """Return the list that a Dockerfile installs, where nothing else says what is installed."""
    is_package = "project" in (read_toml(folder / "pyproject.toml") or {})
    if is_package or first_of(folder, *REQUIREMENTS):
        return None
    for pattern in DOCKERFILES:
        for path in sorted(folder.glob(pattern)):
            for match in OF_PIP.finditer(read_text(path) or ""):
                end = match["list"].removeprefix("./").lstrip("/")
                if name := first_of(folder, *(place + end for place in PLACES)):
                    return name
    return None


def _named_in(path: Path) -> Iterator[str]:
    for line in (read_text(path) or "").splitlines():
        if match := NAME.match(line):
            yield match[1].lower()


WANTED_PYTHON = re.compile(
    r"""(?:^|requires-python\s*=\s*["'][>=~^ ]*|^python_(?:full_)?version\s*=\s*["']"""
    r"""|^python\s*=\s*["'][>=~^ ]*|^python-)3\.(?P<minor>\d+)""",
    re.MULTILINE,
)
SAYS_PYTHON = (".python-version", "runtime.txt", "pyproject.toml", "Pipfile")
SHIMS = "/shims/"
"""In a path: a program of pyenv, asdf or mise in the place of several versions."""
TOO_OLD = (
    "{file} wants Python 3.{minor}, and python3 is {here} here: install python3.{minor}, which "
    "build then has to name"
)


OF_IMAGE = re.compile(
    r"^FROM[ \t]+\S{0,200}?\bpython:?3\.(?P<minor>\d+)", re.MULTILINE | re.IGNORECASE
)
DOCKERFILES = (
    *("Dockerfile", "docker/Dockerfile", "docker/*/Dockerfile", "*/Dockerfile"),
    "*/docker/Dockerfile",
)
TOO_NEW = (
    "{file} has Python 3.{minor}, and python3 is {here} here: where a package fails with that, "
    "have python3.{minor} make .venv in build"
)


def python_of_image(folder: Path) -> tuple[str, int] | None:
    """Return the Dockerfile that has Python of some version, and which 3.x that is."""
    for pattern in DOCKERFILES:
        for path in sorted(folder.glob(pattern)):
            if match := OF_IMAGE.search(read_text(path) or ""):
                return path.relative_to(folder).as_posix(), int(match["minor"])
    return None


def wanted_python(folder: Path) -> tuple[str, int] | None:
    """Return the file that says which Python an application needs, and which 3.x that is."""
    for name in SAYS_PYTHON:
        if match := WANTED_PYTHON.search(read_text(folder / name) or ""):
            return name, int(match["minor"])
    return None


def with_its_python(app: FoundApp, folder: Path) -> FoundApp:
    """Return an application whose environment is made by the Python it wants, if that is here."""
    wanted, of_image = wanted_python(folder), python_of_image(folder)
    if not (wanted or of_image) or VENV not in (app.build or ""):
        return app
    file, minor = wanted or of_image or ("", 0)
    try:
        said = run_program(["python3", "--version"], within_s=10).stdout
    except OperationError:  # there is none
        return app
    here = re.search(r"3\.(\d+)", said)
    is_newer = wanted is None and here is not None and int(here[1]) > minor
    if here is None or (int(here[1]) >= minor and not is_newer):
        return app
    program = shutil.which(f"python3.{minor}")
    if program and not _is_empty_shim(program):
        build = (app.build or "").replace(VENV, VENV.replace("python3", f"python3.{minor}"))
        return replace(app, build=build)
    if minor < OLDEST_OF_UV:
        doubt = (TOO_NEW if is_newer else TOO_OLD).format(file=file, minor=minor, here=here[0])
        return app.hindered(Hindrance.HERE, doubt)
    note = f"{file} has Python 3.{minor}, and python3 is {here[0]} here: uv gets that one"
    build = (app.build or "").replace(VENV, _venv_by_uv(minor, or_here=is_newer))
    return replace(app, build=build, notes=(*app.notes, note))


OLDEST_OF_UV = 8
"""Of Python 3: those before can't be had from uv."""


def _venv_by_uv(minor: int, *, or_here: bool) -> str:
    """Return what makes `.venv` by a Python that isn't here; `or_here`: else by the one that is."""
    has_uv = shutil.which(UV) is not None
    program = UV if has_uv else f".tools/bin/{UV}"
    gets = "" if has_uv else f"python3 -m venv .tools && .tools/bin/pip install --quiet {UV} && "
    makes = f"{program} venv --quiet --seed --python 3.{minor} .venv"
    return f"{gets}({makes} || {VENV})" if or_here else gets + makes


def _is_empty_shim(program: str) -> bool:
    """Whether pyenv or the like has a program of this name, and no version of it is chosen."""
    if SHIMS not in program:
        return False
    return run_program([program, "--version"], within_s=10).returncode != 0


def only(name: str, packages: list[str]) -> Installing:
    return Installing(name, f"{IN_VENV} {' '.join(packages)}", PIP, frozenset(packages))


def _by_tool(
    by: str, tool: str, locked: bool, needs: frozenset[str], variables: str = ""
) -> Installing:
    """Have a tool install; where it isn't on this machine, pip gets it into a folder of its own."""
    step, variables = STEPS[tool, locked], variables or IN_PROJECT.get(tool, "")
    adds = ADDS.get(tool, PIP)
    if shutil.which(tool):
        return Installing(by, f"{variables}{step}", adds, needs)
    first = f"python3 -m venv .tools && .tools/bin/pip install --quiet {tool}"
    build = f"{first} && {variables}.tools/bin/{step}"
    adds = f".tools/bin/{adds}" if tool in ADDS else adds
    return Installing(by, build, adds, needs, (f"{tool} isn't installed here: pip gets it",))


def _needs(folder: Path) -> Iterator[str]:
    for line in _requirements(folder):
        if WITH_SERVER.search(line):
            yield "uvicorn"
        if match := NAME.match(line):
            yield match[1].lower()
    for name in ("uv.lock", "poetry.lock"):
        yield from (name.lower() for name in LOCKED.findall(read_text(folder / name) or ""))
    for name in ("setup.py", "setup.cfg"):
        words = re.findall(r"^[ \t]*[\"']?([\w.-]+)", read_text(folder / name) or "", re.MULTILINE)
        yield from (word.lower() for word in words)


def _requirements(folder: Path) -> Iterator[str]:
    seen = [folder / name for name in REQUIREMENTS if (folder / name).is_file()]
    for path in seen:
        for line in (read_text(path) or "").splitlines():
            included = re.match(r"\s*-(?:r|-requirement)[ =]?\s*(\S+)", line)
            if included and len(seen) < MOST_INCLUDED:
                other = path.parent / included[1]
                seen += [other] if ".." not in included[1] and other not in seen else []
            yield line
    project = read_toml(folder / "pyproject.toml") or {}
    yield from map(str, as_list(table(project, "project").get("dependencies")))
    poetry = table(project, "tool", "poetry", "dependencies")
    pipfile = table(read_toml(folder / "Pipfile") or {}, "packages")
    for name, version in (*poetry.items(), *pipfile.items()):
        extras = as_table(version).get("extras")
        yield f"{name}{extras}" if extras else name
    yield from table(json_table(read_text(folder / "Pipfile.lock") or ""), "default")
