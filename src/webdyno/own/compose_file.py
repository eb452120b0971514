"""Reads Compose files: YAML with variables filled in, and which services clients may ask."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from webdyno.model.mistake import Mistake

MOST_BYTES = 1_000_000


class _Loader(yaml.SafeLoader):
    """YAML as Compose reads it, by version 1.2: `on` is a word, and 22:22 no number."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?[0-9]+\.[0-9]*$", "-+0123456789"),
    ("null", r"^(?:~|null|)$", ["~", "n", ""]),
    ("merge", r"^<<$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


_VARIABLE = re.compile(
    r"\$(?:\$|(?P<plain>\w+)|\{(?P<name>\w+)(?:(?P<how>:?[-?+])(?P<other>[^}]*))?\})"
)


def services_of(file: Path, place: str, wanted: str = "") -> dict[str, Any]:
    """Give the services as they are written, without those of a profile that isn't `wanted`.

    Raise Mistake where the file can't be read or is no Compose file.
    """
    return {
        str(name): it
        for name, it in _read(file, place)["services"].items()
        if not (isinstance(it, dict) and it.get("profiles") and str(name) != wanted)
    }


def askable(services: Mapping[str, Any]) -> list[str]:
    """Name the services that clients may ask: those with ports, or all where none has any."""
    published = [name for name, it in services.items() if isinstance(it, dict) and it.get("ports")]
    return published or list(services)


def _read(file: Path, place: str) -> dict[str, Any]:
    try:
        with file.open("rb") as content:
            said = yaml.load(content.read(MOST_BYTES).decode(), _Loader)  # noqa: S506 (a safe one)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Mistake(f"{place}: {file} can't be read: {why.lower()}") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it is nested too deep"
        raise Mistake(f"{place}: {file}{line} is no YAML: {what}") from None
    if not isinstance(said, dict) or not isinstance(said.get("services"), dict):
        raise Mistake(f"{place}: {file} has no services, so it is no Compose file")
    filled = _filled(said, _variables_beside(file), f"{place}: {file}")
    return dict(filled)


def _variables_beside(file: Path) -> dict[str, str]:
    beside = file.parent / ".env"
    return {**(variables_of(beside) if beside.is_file() else {}), **os.environ}


def variables_of(path: Path) -> dict[str, str]:
    """Read a file of NAME=VALUE."""
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name.strip()] = value[1:-1] if quoted else value.strip()
    return found


def _filled(value: Any, variables: Mapping[str, str], where: str) -> Any:  # noqa: ANN401 (YAML)
    """Fill variables in, wherever the file names them."""

    def variable(found: re.Match[str]) -> str:
        name, how, other = found["plain"] or found["name"], found["how"] or "", found["other"] or ""
        if name is None:
            return "$"
        is_there = name in variables and not (how.startswith(":") and not variables[name])
        if how.endswith("?") and not is_there:
            raise Mistake(f"{where}: {name} isn't set: {other}")
        if how.endswith("+"):
            return other if is_there else ""
        return variables[name] if is_there else other

    if isinstance(value, dict):
        return {key: _filled(it, variables, where) for key, it in value.items()}
    if isinstance(value, list):
        return [_filled(it, variables, where) for it in value]
    return _VARIABLE.sub(variable, value) if isinstance(value, str) else value
