"""Settings that differ from others in some keys, as an arm's load does from the experiment's."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import JsonValue

from webdyno.model.base import Model

Changes = dict[str, JsonValue]
"""Keys of a table with other values; a table within it is changed key by key."""

M = TypeVar("M", bound=Model)


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
        data = _merged(data, each)
    return data


def _merged(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(data)
    for key, value in changes.items():
        inner = merged.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(inner, value)
        else:
            merged[key] = value
    return merged
