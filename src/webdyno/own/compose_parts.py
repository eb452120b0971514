"""What a Compose file takes from others: `include`, and services that extend others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdyno.model.errors import UserError

DEEPEST = 20
"""Files, or services, each of which is made of the next."""
Json = dict[str, Any]
Read = Callable[[Path], Json]
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
    files: dict[Path, Json] = field(default_factory=dict)

    def complete(self, file: Path, place: str, depth: int = 0) -> Json:
        """Give what a file says; raise UserError for what takes from itself, or can't be read."""
        if depth > DEEPEST:
            raise UserError(f"{place}: {file}: files that include each other can't be read")
        said = dict(self._of(file))
        whole: Json = {}
        for each in _listed(said.pop("include", None)):
            paths = each.get("path") if isinstance(each, dict) else each
            for path in _listed(paths):
                included = file.parent / str(path)
                part = self.complete(included, place, depth + 1)
                whole = self.merge(whole, part, f"{place}: {included}")
        services = said.get("services")
        if isinstance(services, dict):
            said["services"] = {
                name: self._service(
                    file, str(name), service, f"{place}: {file}: services.{name}", 0
                )
                for name, service in services.items()
            }
        return self.merge(whole, said, f"{place}: {file}") if whole else said

    def _of(self, file: Path) -> Json:
        if file not in self.files:
            self.files[file] = self.read(file)
        return self.files[file]

    def _service(self, file: Path, name: str, said: Any, where: str, depth: int) -> Any:  # noqa: ANN401
        """Give a service with what it extends before its own keys."""
        if not isinstance(said, dict):
            return said
        own = {key: value for key, value in said.items() if key != "extends"}
        if file.parent != self.project:
            own = _with_whole_paths(own, file.parent)
        if "extends" not in said:
            return own
        if depth > DEEPEST:
            raise UserError(f"{where}.extends: services that extend each other can't be read")
        extends = said["extends"]
        table = extends if isinstance(extends, dict) else {"service": extends}
        other = file.parent / str(table["file"]) if table.get("file") else file
        base = str(table.get("service", name))
        services = self._of(other).get("services")
        if not isinstance(services, dict) or base not in services:
            raise UserError(f"{where}.extends: {other} has no service {base}")
        inherited = self._service(other, base, services[base], where, depth + 1)
        return self.merge(inherited, own, where)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _with_whole_paths(service: Mapping[str, Any], folder: Path) -> Json:
    """Give a service whose relative paths begin in the folder of its own file."""
    found = dict(service)
    build = found.get("build")
    if isinstance(build, dict):
        found["build"] = {**build, "context": str(folder / str(build.get("context", ".")))}
    elif build is not None:
        found["build"] = str(folder / str(build))
    if "env_file" in found:
        found["env_file"] = [_whole_file(file, folder) for file in _listed(found["env_file"])]
    if isinstance(found.get("volumes"), list):
        found["volumes"] = [_whole_volume(volume, folder) for volume in found["volumes"]]
    return found


def _whole_file(said: Any, folder: Path) -> Any:  # noqa: ANN401 (YAML)
    if isinstance(said, dict):
        return {**said, "path": str(folder / str(said.get("path", "")))}
    return str(folder / str(said))


def _whole_volume(said: Any, folder: Path) -> Any:  # noqa: ANN401 (YAML)
    if isinstance(said, dict):
        source = str(said.get("source") or "")
        return {**said, "source": str(folder / source)} if source.startswith(".") else said
    text = str(said)
    return f"{folder}/{text}" if text.startswith(".") else text
