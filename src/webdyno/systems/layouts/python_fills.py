"""What makes and fills the tables of a Python application."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import sources

COMMAND = re.compile(
    r"""@(?P<of>\w+\.cli|click)\.command\(\s*+(?:["'](?P<given>[\w-]+)["'])?[^\n]*\n"""
    r"""(?:\s*@[^\n]*\n){0,20}\s*def (?P<function>\w+)"""
)
"""A command of Flask's that may fill the database; without a name its function gives one."""
OF_FLASK = re.compile(r"\bwith_appcontext\b")
"""In a source whose commands of Click's are Flask's."""
QUIETLY = ">/dev/null"
TABLES = ("create_db", "createdb", "init_db", "initdb", "create_tables", "create_all", "db_create")
ROWS = (
    *("seed", "seed_db", "seed_data", "populate", "populate_db", "load_demo", "demo_data"),
    *("load_initial_data", "initial_data", "create_demo_data"),
)
"""Names of commands and programs that make tables, and of those that fill them."""


def by_alembic(folder: Path, root: str) -> str | None:
    """Return what migrates; where its file lies deeper it is called from there.

    `root`: the folder in which the application's modules are looked up.
    """
    if (folder / "alembic.ini").is_file():
        is_looked_up = root == "." and not _wants_path(folder)
        where = "" if is_looked_up else f"PYTHONPATH={root} "
        return f"{where}.venv/bin/alembic upgrade head {QUIETLY}"
    below = (*sorted(folder.glob("*/alembic.ini")), *sorted(folder.glob("*/*/alembic.ini")))
    inside = next((path.parent.relative_to(folder) for path in below), None)
    if inside is None or not re.fullmatch(r"[\w./-]+", str(inside)):
        return None
    up = "../" * len(inside.parts)
    return f"(cd {inside} && {up}.venv/bin/alembic upgrade head {QUIETLY})"


PREPENDS = re.compile(r"^prepend_sys_path\s*=", re.MULTILINE)
IMPORTED = re.compile(r"^(?:from|import)[ \t]+(\w+)", re.MULTILINE)


def _wants_path(folder: Path) -> bool:
    """Whether Alembic's scripts import what stands here, which it doesn't look up by itself."""
    if PREPENDS.search(read_text(folder / "alembic.ini") or ""):
        return False
    depths = ("*/env.py", "*/*/env.py", "*/*/*/env.py", "*/*/*/*/env.py")
    texts = (read_text(path) or "" for depth in depths for path in folder.glob(depth))
    imported = {name for text in texts if "alembic" in text for name in IMPORTED.findall(text)}
    return any(is_module(folder, name) for name in imported)


def is_module(folder: Path, name: str) -> bool:
    """Whether Python imports a name from a folder."""
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def seed(folder: Path, target: str, package: str) -> str | None:
    """Return what makes and fills tables: commands of Flask's, or a program of a usual name."""
    commands = set(_commands(folder))
    likely = (
        next((name for name in _spellings(names) if name in commands), None)
        for names in (TABLES, ROWS)
    )
    calls = [f".venv/bin/flask --app {target} {name} {QUIETLY}" for name in likely if name]
    if calls:
        return " && ".join(calls)
    if program := next(_seeding_programs(folder, package), None):
        return f".venv/bin/python {program} {QUIETLY}"
    return _filled_as_script(folder, target)


AS_SCRIPT = re.compile(
    r"^if __name__ ?== ?[\"']__main__[\"']:[^\n]*\n(?P<does>(?:[ \t]+[^\n]*\n?|\n)*+)", re.MULTILINE
)
FILLS = re.compile(
    r"^[ \t]+(?P<call>(?:\w+\.)?(?:create_all|create_tables?|(?:create|init|setup)_(?:db|database)"
    r"|initialize_database|seed\w*|populate\w*|create_(?:default_)?admin\w*))\(\)",
    re.MULTILINE,
)


def _filled_as_script(folder: Path, target: str) -> str | None:
    """Return what a module does to its database as a script alone, which no server does."""
    place, _, name = target.partition(":")
    text = read_text(folder / f"{place}.py") or ""
    block = AS_SCRIPT.search(text)
    calls = [match["call"] for match in FILLS.finditer(block["does"])] if block else []
    before = text[: block.start()] if block else ""
    only_there = [
        each
        for each in calls
        if not re.search(rf"^(?:with [^\n]*\n[ \t]+)?{each}\(\)", before, re.MULTILINE)
    ]
    if not only_there or not name.isidentifier():
        return None
    module = place.replace("/", ".")
    context = f"{name}.app_context().push(); " if "app_context" in text else ""
    does = f"from {module} import *; {context}{'; '.join(f'{each}()' for each in only_there)}"
    return f".venv/bin/python -c '{does}' {QUIETLY}"


def _commands(folder: Path) -> Iterator[str]:
    for path in sources(folder, {".py"}):
        text = read_text(path) or ""
        for command in COMMAND.finditer(text):
            if command["of"] != "click" or OF_FLASK.search(text):
                yield command["given"] or command["function"].replace("_", "-")


def _spellings(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        yield name.replace("_", "-")


def _seeding_programs(folder: Path, package: str) -> Iterator[str]:
    """Return what Python is called with; what a package imports isn't taken for a program."""
    inside = folder.joinpath(*package.split("."))
    for name in (*ROWS, *TABLES):
        if (folder / f"{name}.py").is_file():
            yield f"{name}.py"
        if (folder / f"scripts/{name}.py").is_file():
            yield f"-m scripts.{name}"
        if package and "__main__" in (read_text(inside / f"{name}.py") or ""):
            yield f"-m {package}.{name}"
