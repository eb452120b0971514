"""Folders with a few files of an application, and what is found there."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.app import FoundApp

Files = Mapping[str, str | Mapping[str, Any]]
"""By name; a table is written as JSON."""


class Case(NamedTuple):
    """A layout, and what is right about it."""

    files: Files
    start: str | None = None
    build: str | None = None
    paths: tuple[str, ...] = ("/",)
    says: tuple[str, ...] = ()
    """Parts of its notes and doubts."""
    environment: dict[str, str] | None = None
    """Some of its variables."""
    others: dict[str, Any] = {}
    """Further fields."""


def laid_out(folder: Path, files: Files) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return folder


def check(folder: Path, case: Case) -> None:
    """Compare what is found with what is right."""
    found = find_app(laid_out(folder, case.files))
    assert found
    assert (found.start, found.build, found.paths) == (case.start, case.build, case.paths)
    said = [*found.notes, *found.doubts]
    for part in case.says:
        assert any(part in it for it in said), said
    assert (case.environment or {}).items() <= found.environment.items()
    assert replace(found, **case.others) == found


def choices(folder: Path, files: Files) -> dict[str, FoundApp]:
    found = find_app(laid_out(folder, files))
    assert found
    assert not found.is_whole
    return dict(found.choices)
