"""Reads Compose files: merged, with variables filled in, and which services clients may ask."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdyno.model.files import read_named
from webdyno.model.mistake import Mistake
from webdyno.own.yaml_file import MOST_BYTES, read_yaml

USUAL_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
OVERRIDES = (
    *("compose.override.yaml", "compose.override.yml"),
    *("docker-compose.override.yaml", "docker-compose.override.yml"),
)
SEVERAL = ","
"""Between the names of files that are merged."""
_VARIABLE = re.compile(
    r"\$(?:\$|(?P<plain>\w+)"
    r"|\{(?P<name>\w+)(?:(?P<how>:?[-?+])(?P<other>(?:[^{}]|\$\{[^{}]*\})*))?\})"
)
REPLACED = {"command", "entrypoint", "test"}
"""Lists that the later file says anew; others go on behind those of the earlier."""
TABLES = {"environment", "labels", "args", "depends_on", "sysctls", "extra_hosts"}
"""Keys that may be written as a list: of NAME=VALUE, or of names."""


@dataclass(frozen=True)
class ComposeProject:
    """What Compose files say together."""

    files: tuple[Path, ...]
    all_services: Mapping[str, Any]
    """As they are written."""
    variables: Mapping[str, str]
    """Of the environment, and of `.env` beside the first file."""
    unset: tuple[str, ...]
    """Variables that the files name and nobody sets: they are empty."""

    @property
    def name(self) -> str:
        """For people: the names of its files."""
        return SEVERAL.join(it.name for it in self.files)

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self.files[0].parent

    def services(self, wanted: str = "") -> dict[str, Any]:
        """Give the services without those of a profile that isn't `wanted`."""
        return {
            str(name): it
            for name, it in self.all_services.items()
            if not (isinstance(it, dict) and it.get("profiles") and str(name) != wanted)
        }


def read_compose(files: Sequence[Path], place: str) -> ComposeProject:
    """Read files, each merged into those before it; raise Mistake where that isn't possible.

    As with Compose, an override file beside a single one of the usual name is merged as well.
    """
    together = (*files, *_override_of(files))
    filling = _Filling(_variables_beside(files[0], place))
    said: Any = {}
    for file in together:
        where = f"{place}: {file}"
        part = filling.filled(_read(file, place))
        if filling.lacking:
            names = ", ".join(f"{name} ({why})" for name, why in filling.lacking.items())
            raise Mistake(f"{where}: to be set, in the environment or in .env: {names}")
        if "include" in part:
            raise Mistake(f"{where}: include isn't read here; {_written_out(files)}")
        said = _merged(said, part, where)
    services = said.get("services")
    if not isinstance(services, dict):
        raise Mistake(f"{place}: {files[0]} has no services, so it is no Compose file")
    for name, service in services.items():
        if isinstance(service, dict) and "extends" in service:
            raise Mistake(
                f"{place}: {files[0]}: services.{name}.extends isn't read here; "
                f"{_written_out(files)}"
            )
    return ComposeProject(together, services, filling.variables, tuple(filling.unset))


def _written_out(files: Sequence[Path]) -> str:
    flags = " ".join(f"-f {it.name}" for it in files)
    return f"write one file with all of it: docker compose {flags} config >whole.yaml"


def _override_of(files: Sequence[Path]) -> list[Path]:
    if len(files) != 1 or files[0].name not in USUAL_FILES:
        return []
    beside = (files[0].parent / name for name in OVERRIDES)
    return [it for it in beside if it.is_file()][:1]


def askable(services: Mapping[str, Any]) -> list[str]:
    """Name the services that clients may ask: those with ports, or all where none has any."""
    published = [name for name, it in services.items() if isinstance(it, dict) and it.get("ports")]
    return published or list(services)


def _read(file: Path, place: str) -> dict[str, Any]:
    said = read_yaml(file, place)
    if not isinstance(said, dict):
        raise Mistake(f"{place}: {file} has no services, so it is no Compose file")
    return said


def _variables_beside(file: Path, place: str) -> dict[str, str]:
    beside = file.parent / ".env"
    return {**(variables_of(beside, place) if beside.is_file() else {}), **os.environ}


def variables_of(path: Path, place: str) -> dict[str, str]:
    """Read a file of NAME=VALUE; raise Mistake where there is none that can be read."""
    found = {}
    for line in _lines(path, place):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name.strip()] = value[1:-1] if quoted else value.strip()
    return found


def _lines(path: Path, place: str) -> list[str]:
    read = read_named(path, MOST_BYTES, place)
    if b"\0" in read:
        raise Mistake(f"{place}: {path} is no file of variables")
    return read.decode(errors="replace").splitlines()


@dataclass(frozen=True)
class _Filling:
    """Fills variables in, wherever a file names them, and remembers those that aren't set."""

    variables: Mapping[str, str]
    unset: dict[str, None] = field(default_factory=dict)
    """Those that are empty then."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Those that the file demands, with its words."""

    def filled(self, value: Any) -> Any:  # noqa: ANN401 (YAML)
        """Give a value with all of its texts filled in."""
        if isinstance(value, dict):
            return {key: self.filled(it) for key, it in value.items()}
        if isinstance(value, list):
            return [self.filled(it) for it in value]
        return _VARIABLE.sub(self._variable, value) if isinstance(value, str) else value

    def _variable(self, found: re.Match[str]) -> str:
        name, how, other = found["plain"] or found["name"], found["how"] or "", found["other"] or ""
        if name is None:
            return "$"
        is_there = name in self.variables and not (how.startswith(":") and not self.variables[name])
        if how.endswith("+"):
            return str(self.filled(other)) if is_there else ""
        if is_there:
            return self.variables[name]
        if how.endswith("?"):
            self.lacking[name] = other
        elif not how:
            self.unset[name] = None
        return str(self.filled(other))


def _merged(earlier: Any, later: Any, where: str, key: str = "") -> Any:  # noqa: ANN401 (YAML)
    """Give both as one, the later before the earlier where they name the same.

    As compose-spec.io has it under "Merge Compose files".
    """
    if later is None or earlier is None:
        return earlier if later is None else later
    if key in TABLES:
        earlier, later = _table(earlier, key), _table(later, key)
    if key == "build" and isinstance(earlier, Mapping) != isinstance(later, Mapping):
        earlier, later = _build(earlier), _build(later)
    if isinstance(earlier, Mapping) and isinstance(later, Mapping):
        both = dict(earlier)
        for name, value in later.items():
            both[name] = _merged(both[name], value, where, str(name)) if name in both else value
        return both
    if isinstance(earlier, list) and isinstance(later, list) and key not in REPLACED:
        return _one_after_the_other(earlier, later, key)
    if isinstance(earlier, Mapping | list) != isinstance(later, Mapping | list):
        if key in REPLACED:
            return later
        raise Mistake(f"{where}: {key} is of another form than in the file before it")
    return later


def _table(value: Any, key: str) -> Any:  # noqa: ANN401
    if not isinstance(value, list):
        return value
    if key == "depends_on":
        return {str(name): {"condition": "service_started"} for name in value}
    pairs = (str(it).partition("=") for it in value)
    return {name: text if equals else None for name, equals, text in pairs}


def _build(value: Any) -> Any:  # noqa: ANN401
    return {"context": value} if isinstance(value, str) else value


def _one_after_the_other(earlier: list[Any], later: list[Any], key: str) -> list[Any]:
    """Give both lists; of volumes at one place in the container the later."""
    if key == "volumes":
        places = {_place(it) for it in later}
        return [*(it for it in earlier if _place(it) not in places), *later]
    return [*earlier, *(it for it in later if it not in earlier)]


def _place(volume: Any) -> str:  # noqa: ANN401
    """Give where a volume is in the container."""
    if isinstance(volume, Mapping):
        return str(volume.get("target", ""))
    _, colon, rest = str(volume).partition(":")
    return rest.partition(":")[0] if colon else str(volume)
