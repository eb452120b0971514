"""What others wrote, read without trust: texts, TOML and JSON, and tables wherever they may be."""

import codecs
import json
import re
import signal
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, JsonValue

from webdyno.core.errors import UserError
from webdyno.core.files import MIB, open_given

Table = dict[str, Any]
MOST_BYTES = 200_000
MOST_DEPTH = 100
"""Tables and lists within each other: whoever walks through them may do so by calling itself."""
MOST_PARTS = 50
"""Of a key of TOML. Python takes a time for it that grows with the square of its parts."""
_NO_KEY = re.compile(
    r'"""(?:[^"\\]|\\(?:.|\Z)|"(?!""))*(?:"{3,5}|\Z)|\'\'\'(?:[^\']|\'(?!\'\'))*(?:\'{3,5}|\Z)'
    r'|"(?:[^"\\\n]|\\(?:.|\Z))*"?|\'[^\'\n]*\'?|#[^\n]*',
    re.DOTALL,
)
"""Strings and comments of TOML, also those without an end, so that each is looked at once."""
_AROUND_KEYS = re.compile(r"[=,{}\[\]\n]")


@dataclass
class ReadingLimit:
    """How much more is read in all; each time counts that a file is read."""

    files: int = 25_000
    size_bytes: int = 80 * MIB

    @property
    def is_reached(self) -> bool:
        return self.files <= 0 or self.size_bytes <= 0


_LIMIT: ContextVar[ReadingLimit | None] = ContextVar("limit", default=None)


@contextmanager
def limited_reading(cpu_s: float = 120.0) -> Iterator[ReadingLimit]:
    """Read texts up to a limit in all: of more files than one can look at in a minute or two."""
    before = _LIMIT.set(limit := ReadingLimit())
    try:
        with limited_cpu(
            cpu_s, "the files there take too long to look at: write webdyno.toml by hand"
        ):
            yield limit
    finally:
        _LIMIT.reset(before)


@contextmanager
def limited_cpu(cpu_s: float, refusal: str) -> Iterator[None]:
    """Raise UserError after so much CPU time: there are texts on which a pattern never ends.

    Only in the main thread, as Python has it with signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def refuse(_: int, __: FrameType | None) -> None:
        raise UserError(refusal)

    handler = signal.signal(signal.SIGPROF, refuse)
    # Once more each second, where the first one is suppressed.
    before = signal.setitimer(signal.ITIMER_PROF, cpu_s, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, *before)
        signal.signal(signal.SIGPROF, handler)


MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"": "utf-8",
}
"""How a text is coded, by the mark at its beginning: Windows' shell writes lists in UTF-16."""


def read_text(path: Path) -> str | None:
    """Return a file's text; None where there is none that can be read, such as a pipe."""
    limit = _LIMIT.get()
    if limit and limit.is_reached:
        return None
    try:
        with open_given(path, follow=True) as file:
            content = file.read(MOST_BYTES)
    except (OSError, ValueError, UserError):  # a NUL in its name is a ValueError
        return None
    if limit:
        limit.files -= 1
        limit.size_bytes -= len(content)
    mark = next(mark for mark in MARKS if content.startswith(mark))
    return content.decode(MARKS[mark], errors="replace")


def read_toml(path: Path) -> Table | None:
    """Return a file's data, empty where it isn't TOML; None where there is no file."""
    text = read_text(path)
    try:
        return None if text is None else toml_data(text)
    except tomllib.TOMLDecodeError:
        return {}


def toml_data(text: str) -> Table:
    """Return a text's data; raise TOMLDecodeError where it isn't TOML, or is nested too deeply."""
    if any(word.count(".") >= MOST_PARTS for word in _AROUND_KEYS.split(_NO_KEY.sub("", text))):
        raise tomllib.TOMLDecodeError(f"a key of more than {MOST_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise tomllib.TOMLDecodeError(str(error)) from None
    except RecursionError:
        data = None
    if data is None or _is_deep(data):
        raise tomllib.TOMLDecodeError("nested too deeply")
    return data


def json_table(text: str) -> Table:
    """Return the object that a text of JSON is; an empty one for anything else."""
    try:
        data = as_table(json.loads(text))
    except (ValueError, RecursionError):
        return {}
    return {} if _is_deep(data) else data


def _is_deep(data: Table) -> bool:
    level: list[Any] = [data]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if is_table(outer) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


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


def without_nulls(data: JsonValue) -> JsonValue:
    """Return data as TOML can have it."""
    if is_table(data):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [without_nulls(value) for value in data if value is not None]
    return data


def _can_be_toml(table: Table) -> Table:
    if without_nulls(table) != table:
        raise ValueError("holds a null, which TOML doesn't know; leave it out")
    return table


TomlTable = Annotated[dict[str, JsonValue], AfterValidator(_can_be_toml)]
"""A table that may have any keys, and values as TOML has them."""


def count_values(data: object) -> int:
    """Return how many values there are in tables and lists, however deep."""
    count, left = 0, [data]
    while left:
        inner = left.pop()
        left += inner.values() if is_table(inner) else as_list(inner)
        count += 1
    return count


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
