"""What fills the database of a Python application: its migrations, and what it seeds."""

import re
from pathlib import Path

from webdyno.own.layouts.django import SEEDS
from webdyno.own.layouts.files import read_text, sources
from webdyno.own.layouts.python_tools import Installing

COMMAND = re.compile(
    r"""@app\.cli\.command\(\s*(?:["'](?P<given>[\w-]+)["'])?[^\n]*\n"""
    r"""(?:\s*@[^\n]*\n)*\s*def (?P<function>\w+)"""
)
"""A command of Flask's; without a name it is called as its function is."""
QUIETLY = ">/dev/null"


def migration(folder: Path, how: Installing, target: str) -> str | None:
    """Give what brings its tables up to date; `target` is the application, for Flask's command."""
    if "flask-migrate" in how.needs and (folder / "migrations/env.py").is_file():
        return f".venv/bin/flask --app {target} db upgrade {QUIETLY}"
    if "alembic" in how.needs and (folder / "alembic.ini").is_file():
        return f".venv/bin/alembic upgrade head {QUIETLY}"
    return None


def seed(folder: Path, target: str) -> str | None:
    """Give what fills them: a command of Flask's, or a program of a usual name."""
    commands = {
        command["given"] or command["function"].replace("_", "-")
        for path in sources(folder)
        for command in COMMAND.finditer(read_text(path) or "")
    }
    for name in SEEDS:
        for command in (name, name.replace("_", "-")):
            if command in commands:
                return f".venv/bin/flask --app {target} {command} {QUIETLY}"
    programs = {f"{name}.py": f"{name}.py" for name in SEEDS}
    programs |= {f"scripts/{name}.py": f"-m scripts.{name}" for name in SEEDS}
    by_file = next((words for name, words in programs.items() if (folder / name).is_file()), None)
    return f".venv/bin/python {by_file} {QUIETLY}" if by_file else None
