"""Settings of an experiment that the command line gives: `--set` and `--vary`."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from webdyno.definitions.fit import toml_value
from webdyno.definitions.toml_file import KeyPath
from webdyno.model.mistake import Mistake


class Override(NamedTuple):
    """A setting, and the flag that gave it."""

    key: KeyPath
    value: object
    flag: str


def settings(texts: Iterable[str]) -> list[Override]:
    """Read `--set KEY=VALUE`: dotted keys, values as in TOML, anything else is taken as text."""
    return [_setting(text, f"--set {text}") for text in texts]


def factors(texts: Iterable[str]) -> list[Override]:
    """Read `--vary KEY=LEVEL,LEVEL…`: a factor and its levels, values as in TOML."""
    return [_factor(text, f"--vary {text}") for text in texts]


def with_value(data: dict[str, Any], key: KeyPath, value: object, flag: str) -> dict[str, Any]:
    """Give a copy of an experiment's data in which a key, however deep, has another value."""
    first, *rest = key
    if not rest:
        return {**data, str(first): value}
    inner = data.get(str(first), {})
    if not isinstance(inner, dict):
        raise Mistake(f"{flag}: {first} holds a value, no further keys")
    return {**data, str(first): with_value(inner, tuple(rest), value, flag)}


def dotted(key: str) -> KeyPath:
    """Take a dotted key apart."""
    return tuple(part.strip() for part in key.split("."))


def _setting(text: str, flag: str) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise Mistake(f"{flag}: should look like KEY=VALUE, such as load.connections=16")
    return Override(dotted(key), toml_value(value), flag)


def _factor(text: str, flag: str) -> Override:
    key, equals, levels = text.partition("=")
    if not equals or not all(key.split(".")) or not all(levels.split(",")):
        raise Mistake(f"{flag}: should look like KEY=LEVEL,LEVEL, such as load.connections=1,2,4")
    return Override(("factors", key), [toml_value(level) for level in levels.split(",")], flag)
