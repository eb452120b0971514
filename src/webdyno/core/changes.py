"""Dotted keys, and settings that differ from others in some keys, as a variant's load does."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import JsonValue

from webdyno.core.base import Model

Changes = dict[str, JsonValue]
"""Keys of a table with other values; a table within it is changed key by key."""

M = TypeVar("M", bound=Model)

_KEY_PART = re.compile(r'"([^"]*)"|([^."]*)')


def key_parts(key: str) -> tuple[str, ...]:
    """Take a dotted key apart; what has a dot in it stands in quotation marks."""
    parts, start = [], 0
    while start <= len(key):
        part = _KEY_PART.match(key, start)
        assert part  # noqa: S101 (it may match nothing, but matches everywhere)
        start = part.end() + 1
        parts.append((part[1] or part[2] or "").strip())
        if key[part.end() : start] not in {".", ""}:
            return ("",)  # something behind the closing quotation mark
    return tuple(parts)


def changed(settings: M, *changes: Mapping[str, Any]) -> M:
    """Give settings with some keys changed, later changes over earlier ones.

    Raise pydantic's ValidationError for what the settings can't be.
    """
    if not any(changes):
        return settings
    return type(settings).model_validate(changed_data(settings, *changes))


def changed_data(settings: Model, *changes: Mapping[str, Any]) -> dict[str, Any]:
    """Give the same as data that nobody has checked yet."""
    data = settings.model_dump(exclude_unset=True)
    for each in changes:
        data = merged(data, each)
    return data


def with_key(data: Mapping[str, Any], key: Iterable[object], value: object) -> dict[str, Any]:
    """Give data in which a key has another value; its parts name the tables that it is in."""
    *tables, name = map(str, key)
    changes = {name: value}
    for table in reversed(tables):
        changes = {table: changes}
    return merged(data, changes)


def merged(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Give data with some keys changed, and tables key by key."""
    both = dict(data)
    for key, value in changes.items():
        inner = both.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            both[key] = merged(inner, value)
        else:
            both[key] = value
    return both
