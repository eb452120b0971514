"""What Compose files and their services take from others, and in which order services start."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from webdyno.core.errors import UserError
from webdyno.core.tables import Table, is_table, long_form, table

Awaits = Literal["", "healthy", "ended"]
Awaited = Mapping[str, Awaits]
"""By service: what those behind it wait for."""
CONDITIONS: Mapping[str, Awaits] = {
    "service_started": "",
    "service_healthy": "healthy",
    "service_completed_successfully": "ended",
}


def in_order(services: Mapping[str, Any], where: str) -> list[str]:
    """Return the names in an order in which each comes behind those that it depends on."""
    done: dict[str, None] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise UserError(f"{where}: {' and '.join(dict.fromkeys(above))} depend on each other")
        for other in services[name].get("depends_on") or ():
            if other in services:
                add(str(other), (*above, name))
        done[name] = None

    for name in services:
        add(name, ())
    return list(done)


def those_before(front: str, services: Mapping[str, Any]) -> set[str]:
    """Return the services that depend on one, such as proxies: it is asked without them."""
    before = {front}
    while more := {
        name
        for name, service in services.items()
        if name not in before and before & {str(each) for each in service.get("depends_on") or ()}
    }:
        before |= more
    return before - {front}


def awaits(services: Mapping[str, Any], front: str, where: str) -> dict[str, Awaits]:
    """Return what is awaited of services; raise UserError for a condition that isn't known."""
    causes: dict[str, Awaits] = {}
    for name, service in services.items():
        for other, how in table(service, "depends_on").items():
            condition = how.get("condition", "service_started")
            if not isinstance(condition, str) or condition not in CONDITIONS:
                raise UserError(
                    f"{where}: services.{name}.depends_on.{other}: {condition} is no condition; "
                    f"there are {', '.join(CONDITIONS)}"
                )
            if other in services and other != front and CONDITIONS[condition]:
                causes[str(other)] = CONDITIONS[condition]
    return causes


def health_command(service: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the words of a service's `healthcheck`; raise UserError where they are none."""
    check = service.get("healthcheck") or {}
    test = check.get("test")
    if test is None or check.get("disable") is True:
        return ()
    if isinstance(test, str):
        return health_words(["CMD-SHELL", test])
    if isinstance(test, list) and all(isinstance(word, str) for word in test):
        return health_words(test)
    raise UserError(f"{where}.healthcheck.test: {json.dumps(test)} is no command")


def health_words(test: list[str]) -> tuple[str, ...]:
    """Return the words that run a health check, as images and Compose files have it."""
    kind, *words = test or ["NONE"]
    if kind == "CMD-SHELL":
        return ("/bin/sh", "-c", shlex.join(words) if len(words) > 1 else "".join(words))
    return tuple(words) if kind == "CMD" else ()


MOST_COMPLETED = 2_000
DEEPEST = 20
"""Files, or services, each of which is made of the next."""
Read = Callable[[Path], Table]
"""Reads a file, its variables filled in."""
Merge = Callable[[Any, Any, str], Any]
"""Gives both as one; the words are for what can't be merged."""


@dataclass
class ComposeParts:
    """Completes what files say, each with what it takes from others."""

    read: Read
    merge: Merge
    project: Path
    """The folder where relative paths begin."""
    files: dict[Path, Table] = field(default_factory=dict)
    completed: int = 0
    """How often a file was read whole."""

    def complete(self, file: Path, place: str, depth: int = 0) -> Table:
        """Read a file whole; raise UserError where it includes itself, or can't be read."""
        self.completed += 1
        if depth > DEEPEST or self.completed > MOST_COMPLETED:
            raise UserError(f"{place}: {file}: files that include each other can't be read")
        data = dict(self._of(file))
        whole: Table = {}
        for each in _in_list(data.pop("include", None)):
            for path in _in_list(long_form(each, "path").get("path")):
                included = file.parent / str(path)
                part = self.complete(included, place, depth + 1)
                whole = self.merge(whole, part, f"{place}: {included}")
        if is_table(services := data.get("services")):
            where = f"{place}: {file}: services"
            data["services"] = {
                name: self._service(file, str(name), service, f"{where}.{name}", 0)
                for name, service in services.items()
            }
        return self.merge(whole, data, f"{place}: {file}") if whole else data

    def _of(self, file: Path) -> Table:
        if file not in self.files:
            self.files[file] = self.read(file)
        return self.files[file]

    def _service(self, file: Path, name: str, keys: Any, where: str, depth: int) -> Any:  # noqa: ANN401
        """Return a service with what it extends before its own keys."""
        if not is_table(keys):
            return keys
        own = {key: value for key, value in keys.items() if key != "extends"}
        if file.parent != self.project:
            own = _with_whole_paths(own, file.parent)
        if "extends" not in keys:
            return own
        if depth > DEEPEST:
            raise UserError(f"{where}.extends: services that extend each other can't be read")
        extends = long_form(keys["extends"], "service")
        other = file.parent / str(extends["file"]) if extends.get("file") else file
        base = str(extends.get("service", name))
        services = table(self._of(other), "services")
        if base not in services:
            raise UserError(f"{where}.extends: {other} has no service {base}")
        inherited = self._service(other, base, services[base], where, depth + 1)
        return self.merge(inherited, own, where)


def _in_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def env_files(service: Mapping[str, Any]) -> list[Table]:
    """Return the files of variables that a service names, in their long form."""
    return [long_form(file, "path") for file in _in_list(service.get("env_file") or None)]


def _with_whole_paths(service: Mapping[str, Any], folder: Path) -> Table:
    """Return a service whose relative paths begin in the folder of its own file."""
    keys = dict(service)
    if keys.get("build") is not None:
        build = long_form(keys["build"], "context")
        keys["build"] = build | {"context": str(folder / str(build.get("context", ".")))}
    if "env_file" in keys:
        files = [long_form(file, "path") for file in _in_list(keys["env_file"])]
        keys["env_file"] = [
            file | {"path": str(folder / str(file.get("path", "")))} for file in files
        ]
    if isinstance(keys.get("volumes"), list):
        keys["volumes"] = [_whole_volume(volume, folder) for volume in keys["volumes"]]
    return keys


def _whole_volume(volume: Any, folder: Path) -> Any:  # noqa: ANN401 (YAML)
    if is_table(volume):
        source = str(volume.get("source") or "")
        return {**volume, "source": str(folder / source)} if source.startswith(".") else volume
    text = str(volume)
    return f"{folder}/{text}" if text.startswith(".") else text
