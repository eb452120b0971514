"""A variant: what one of the systems under comparison is, and what differs from the others.

Settings that differ in some keys, such as a variant's load, are changed by dotted keys.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field, model_validator

from webdyno.core.base import Bursts, Model, Pause, Size
from webdyno.core.paths import WrittenPaths
from webdyno.core.setting import SettingValue
from webdyno.core.tables import TomlTable

Changes = TomlTable
"""Keys of a table with other values; a table within it is changed key by key."""

M = TypeVar("M", bound=Model)

_KEY_PART = re.compile(r'"([^"]*)"|([^."]*)')


def key_parts(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key; what has a dot in it stands in quotation marks."""
    parts, start = [], 0
    while start <= len(key):
        part = _KEY_PART.match(key, start)
        assert part  # noqa: S101 (it may match nothing, but matches everywhere)
        start = part.end() + 1
        parts.append((part[1] or part[2] or "").strip())
        if key[part.end() : start] not in {".", ""}:
            return ("",)  # something behind the closing quotation mark
    return tuple(parts)


def quoted_part(name: str) -> str:
    """Return a name as a part of a dotted key."""
    return f'"{name}"' if "." in name else name


def with_changes(settings: M, *changes: Mapping[str, Any]) -> M:
    """Return settings with some keys changed, later changes over earlier ones.

    Raise pydantic's ValidationError for what the settings can't be.
    """
    if not any(changes):
        return settings
    return type(settings).model_validate(changed_data(settings, *changes))


def changed_data(settings: Model, *changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same as data that nobody has checked yet."""
    data = settings.model_dump(exclude_unset=True)
    for each in changes:
        data = merge_tables(data, each)
    return data


def with_key(data: Mapping[str, Any], key: Iterable[object], value: object) -> dict[str, Any]:
    """Return data in which a key has another value; its parts name the tables that it is in."""
    *tables, name = map(str, key)
    changes = {name: value}
    for table in reversed(tables):
        changes = {table: changes}
    return merge_tables(data, changes)


def opened_at(data: Model | Mapping[str, Any], key: Sequence[str]) -> dict[str, Any]:
    """Return data in which what leads to a key is tables; all else in it is what it was."""
    if isinstance(data, Model):
        data = {name: getattr(data, name) for name in data.model_fields_set}
    table = {**data}
    inner = table.get(key[0]) if key else None
    if isinstance(inner, Model | Mapping):
        table[key[0]] = opened_at(inner, key[1:])
    return table


def merge_tables(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return data with some keys changed, and tables key by key."""
    both = dict(data)
    for key, value in changes.items():
        inner = both.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            both[key] = merge_tables(inner, value)
        else:
            both[key] = value
    return both


class Variant(Model):
    """One stack with its settings and site, and whatever else differs from the other variants."""

    stack: str
    """A stack of the catalog, or your own (`cmd:…`, `rev:…`, `conf:…`, `image:…`, `url:…`) with
    `dir`, `environment`, `services`, `setup`, `prepare`, `ready`, `ready_within`."""
    site: str | None = None
    """The experiment's by default; another is requested at its first path."""
    paths: WrittenPaths | None = None
    """Short for `load.paths`."""
    load: Changes = {}
    """Keys of `[load]` that differ from the experiment's; all but `loop`."""
    testbed: Changes = {}
    """Keys of `[testbed]` that differ from the experiment's."""
    settings: dict[str, SettingValue] = {}
    """Of the stack and its site: `webdyno list NAME`."""
    memory: Size | None = None
    """Limit for all its services together."""
    cpus: Annotated[float, Field(ge=0.05, le=4096)] | None = None
    """How many of the servers' CPUs it gets, all by default."""
    warmup_s: Pause | None = None
    """Load after each start; `measure.warmup_s` by default."""
    warmup_bursts: Bursts | None = None
    """`measure.warmup_bursts` by default."""

    @model_validator(mode="after")
    def _paths_once(self) -> "Variant":
        if self.paths is not None and "paths" in self.load:
            raise ValueError("paths is short for load.paths; give one of them")
        return self

    @property
    def without_warmup(self) -> "Variant":
        """What it is, without what says how long it is warmed up."""
        return self.replace(warmup_s=None, warmup_bursts=None)

    def with_settings(self, settings: Mapping[str, SettingValue]) -> "Variant":
        """Return it with some settings changed."""
        return self.replace(settings={**self.settings, **settings})

    @property
    def tables(self) -> dict[str, Any]:
        """What it has of its own, key by key."""
        return {"load": self.load_changes, "testbed": self.testbed, "settings": self.settings}

    @property
    def load_changes(self) -> Changes:
        """All that the load has of its own here."""
        return {**self.load, "paths": [*self.paths]} if self.paths else self.load
