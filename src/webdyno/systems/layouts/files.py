"""How readers of layouts look at files that anybody wrote."""

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from webdyno.core.errors import UserError
from webdyno.core.files import opened

MOST_FILES, MOST_FOLDERS = 300, 2_000
MOST_BYTES = 200_000
MOST_MEMBERS = 100
"""Packages of a workspace that are looked at."""
SKIPPED = {
    *("node_modules", "target", "vendor", "venv", "__pycache__", "test", "tests", "dist", "build"),
    *("docs", "migrations", "spec", "e2e", "fixtures", "testdata", "bin", "obj", "deps", "_build"),
}
SAMPLES = {"examples", "example", "samples", "demo", "demos", "benchmarks"}
"""Folders whose applications aren't the one that is around them."""
SOURCES = {
    *(".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".rb", ".ru", ".rs"),
    *(".java", ".kt", ".php", ".ex", ".exs", ".cs"),
}


def read_text(path: Path) -> str | None:
    """Give a file's text; None where there is none that can be read, such as a pipe."""
    try:
        with opened(path, follow=True) as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except (OSError, UserError):
        return None


def read_toml(path: Path) -> dict[str, Any] | None:
    """Give a file's data, empty where it isn't TOML; None where there is no file."""
    text = read_text(path)
    try:
        return None if text is None else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def table(data: object, *keys: str) -> dict[str, Any]:
    """Give a table inside of data that anybody wrote; an empty one where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def first_of(folder: Path, *names: str) -> str | None:
    return next((name for name in names if (folder / name).is_file()), None)


def matching(folder: Path, patterns: object) -> list[Path]:
    """List the members of a workspace, which it names by patterns such as `packages/*`."""
    members: list[Path] = []
    for pattern in patterns if isinstance(patterns, list) else ():
        text = str(pattern).rstrip("/")
        if text.startswith(("/", "!")) or ".." in text or not text.strip("./"):
            continue
        try:
            members += sorted(folder.glob(text))
        except ValueError:
            continue
    return members[:MOST_MEMBERS]


def sources(folder: Path, endings: Collection[str] = SOURCES) -> list[Path]:
    """List files of source text, those at the top first; hidden folders and tests are excluded."""
    texts: list[Path] = []
    folders, looked_at = [folder], 0
    while folders and len(texts) < MOST_FILES and looked_at < MOST_FOLDERS:
        current = folders.pop(0)
        looked_at += 1
        inside = sorted(current.iterdir()) if current.is_dir() else []
        texts += [path for path in inside if path.suffix in endings and path.is_file()]
        others = SAMPLES if current == folder else ()
        folders += [path for path in inside if is_of_interest(path) and path.name not in others]
    return texts[:MOST_FILES]


def is_of_interest(path: Path) -> bool:
    """Whether it is a folder in which an application's own files may be."""
    hidden = path.name.startswith(".") or path.name in SKIPPED
    return path.is_dir() and not path.is_symlink() and not hidden
