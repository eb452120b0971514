"""What others wrote, read without trust: texts, TOML and JSON, and tables wherever they may be."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from webdyno.core.errors import UserError
from webdyno.core.files import open_given

Table = dict[str, Any]
MOST_BYTES = 200_000


def read_text(path: Path) -> str | None:
    """Return a file's text; None where there is none that can be read, such as a pipe."""
    try:
        with open_given(path, follow=True) as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError, UserError):  # a NUL in its name is a ValueError
        return None


def read_toml(path: Path) -> Table | None:
    """Return a file's data, empty where it isn't TOML; None where there is no file."""
    text = read_text(path)
    try:
        return None if text is None else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def json_table(text: str) -> Table:
    """Return the object that a text of JSON is; an empty one for anything else."""
    try:
        return as_table(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def is_table(value: object) -> TypeGuard[Table]:
    return isinstance(value, dict)


def as_table(value: object) -> Table:
    """Return a table; an empty one in the place of anything else."""
    return value if is_table(value) else {}


def long_form(value: object, key: str) -> Table:
    """Return a table; anything else is the short form of one that has this key alone."""
    return value if is_table(value) else {key: value}


def as_list(value: object) -> list[Any]:
    """Return a list; an empty one in the place of anything else."""
    return value if isinstance(value, list) else []


def table(data: object, *keys: str) -> Table:
    """Return a table inside of others; an empty one where there is none."""
    for key in keys:
        data = as_table(data).get(key)
    return as_table(data)


def tables_in(data: object) -> Iterator[Table]:
    """Return the tables in tables and lists, however deep, the outer ones first."""
    if is_table(data):
        yield data
        data = list(data.values())
    for inner in as_list(data):
        yield from tables_in(inner)


def several(value: object) -> list[str]:
    """Return the entries of a list, a table (`KEY=VALUE`) or a single value as texts."""
    if is_table(value):
        return [f"{key}={item}" for key, item in value.items()]
    return list(map(str, value if isinstance(value, list) else [value]))
