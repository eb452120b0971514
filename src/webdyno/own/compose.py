"""Compose files (compose-spec.io): their services, and how each is run as a container of an arm."""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from webdyno.definitions.near import nearest
from webdyno.model.mistake import Mistake
from webdyno.own.compose_file import askable, services_of, variables_of

OPTIONS = {
    "user": "--user",
    "working_dir": "--workdir",
    "cap_add": "--cap-add",
    "cap_drop": "--cap-drop",
    "tmpfs": "--tmpfs",
    "security_opt": "--security-opt",
    "shm_size": "--shm-size",
    "group_add": "--group-add",
    "stop_signal": "--stop-signal",
    "sysctls": "--sysctl",
}
"""Keys whose values `podman run` takes as they are."""
SWITCHES = {"read_only": "--read-only", "init": "--init", "privileged": "--privileged"}
OTHERS = {
    *("image", "build", "command", "entrypoint", "environment", "env_file", "volumes", "ports"),
    *("expose", "depends_on", "profiles", "container_name", "labels", "pull_policy"),
}
"""Keys that are heeded in other ways, or needn't be."""
BUILD = {"context", "dockerfile", "args", "target"}

Scalar = str | bool | int | float
Words = str | list[Scalar] | None
Several = Scalar | list[Scalar] | dict[str, Scalar] | None


class _BuildForm(BaseModel):
    context: str = "."
    dockerfile: str = "Dockerfile"
    args: list[Scalar] | dict[str, Scalar] | None = None
    target: str = ""


class _ServiceForm(BaseModel):
    """Of what form the keys have to be that aren't passed on as they are."""

    image: str | None = None
    build: str | _BuildForm | None = None
    command: Words = None
    entrypoint: Words = None
    environment: dict[str, Scalar | None] | list[Scalar] | None = None
    env_file: str | list[str] | None = None
    volumes: list[str | dict[str, Any]] | None = None
    ports: list[Scalar | dict[str, Any]] | None = None
    expose: list[Scalar] | None = None
    depends_on: list[str] | dict[str, Any] | None = None


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTION: TypeAdapter[dict[str, Several]] = TypeAdapter(dict[str, Several])


@dataclass(frozen=True)
class Build:
    """How an image is built."""

    context: Path
    file: Path
    options: tuple[str, ...]
    """For `podman build`."""


@dataclass(frozen=True)
class ComposeService:
    """A service of the file."""

    name: str
    image: str
    build: Build | None
    """Instead of an image that is there."""
    environment: dict[str, str]
    options: tuple[str, ...]
    """For `podman run`."""
    command: tuple[str, ...]
    ports: tuple[int, ...]


def compose_services(
    file: Path, wanted: str, place: str, tell: Callable[[str], None]
) -> list[ComposeService]:
    """Give all services of a file, each behind those that it depends on, and `wanted` last.

    Raise Mistake where the file can't be read or has no such service.
    """
    services = services_of(file, place, wanted)
    for name, service in services.items():
        where = f"{place}: {file}: services.{name}"
        if not _NAME.fullmatch(name) or not isinstance(service, dict):
            raise Mistake(f"{where} is no service")
        if "image" not in service and "build" not in service:
            raise Mistake(f"{where} has neither image nor build")
        _check(service, where)
    asked = _asked(services, wanted, f"{place}: {file}")
    if left_out := list(_left_out(services)):
        tell(f"{file.name}: left out: {', '.join(left_out)}")
    others = _in_order(services, f"{place}: {file}")
    names = [*(name for name in others if name != asked), asked]
    return [_service(name, services[name], file, place) for name in names]


def _check(service: Mapping[str, Any], where: str) -> None:
    try:
        _ServiceForm.model_validate(service)
        for key in service.keys() & OPTIONS:
            _OPTION.validate_python({key: service[key]})
    except ValidationError as error:
        first = error.errors()[0]
        key = next((it for it in first["loc"] if isinstance(it, str)), "")
        raise Mistake(f"{where}.{key}: {first['msg']}") from None


def _asked(services: Mapping[str, Any], wanted: str, where: str) -> str:
    """Give the service that clients ask: the named one, or the only one that it can be."""
    if wanted in services:
        return wanted
    if wanted:
        raise Mistake(f"{where} has no service {wanted}; {nearest(wanted, services)}")
    names = askable(services)
    if len(names) == 1:
        return names[0]
    example = f"{where.rpartition('/')[2]}#{next(iter(names), 'web')}"
    raise Mistake(f"{where}: say which service is asked, such as image:{example}")


def _left_out(services: Mapping[str, Any]) -> Iterator[str]:
    known = OPTIONS.keys() | SWITCHES.keys() | OTHERS
    for name, service in services.items():
        yield from (f"{name}.{key}" for key in service if key not in known and key[:2] != "x-")
        if isinstance(service.get("build"), dict):
            yield from (f"{name}.build.{key}" for key in service["build"] if key not in BUILD)


def _in_order(services: Mapping[str, Any], where: str) -> list[str]:
    """Give the names so that each comes behind those that it depends on."""
    done: dict[str, None] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise Mistake(f"{where}: {' and '.join(dict.fromkeys(above))} depend on each other")
        for other in services[name].get("depends_on") or ():
            if other in services:
                add(str(other), (*above, name))
        done[name] = None

    for name in services:
        add(name, ())
    return list(done)


def _service(name: str, said: Mapping[str, Any], file: Path, place: str) -> ComposeService:
    where = f"{place}: {file}: services.{name}"
    options = [
        f"{OPTIONS[key]}={it}" for key in said.keys() & OPTIONS for it in _several(said[key])
    ]
    options += [flag for key, flag in SWITCHES.items() if said.get(key) is True]
    options += [f"--volume={_volume(it, file, where)}" for it in said.get("volumes") or ()]
    if "entrypoint" in said:
        options.append(f"--entrypoint={json.dumps(_words(said['entrypoint']))}")
    return ComposeService(
        name=name,
        image=str(said.get("image", "")),
        build=_build(said["build"], file) if said.get("build") else None,
        environment=_environment(said, file, where),
        options=tuple(sorted(options)),
        command=tuple(_words(said.get("command") or ())),
        ports=tuple(_ports(said, where)),
    )


def _several(value: object) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={it}" for key, it in value.items()]
    return list(map(str, value if isinstance(value, list) else [value]))


def _words(value: object) -> list[str]:
    return shlex.split(value) if isinstance(value, str) else _several(value or [])


def _build(said: object, file: Path) -> Build:
    table = said if isinstance(said, dict) else {"context": said}
    context = (file.parent / str(table.get("context", "."))).resolve()
    options = [f"--build-arg={it}" for it in _several(table.get("args") or [])]
    if "target" in table:
        options.append(f"--target={table['target']}")
    return Build(context, context / str(table.get("dockerfile", "Dockerfile")), tuple(options))


def _volume(said: object, file: Path, where: str) -> str:
    """Give a volume as Podman takes it; named ones are new, and empty, with each start."""
    if isinstance(said, dict):
        mode = ":ro" if said.get("read_only") else ""
        said = f"{said.get('source', '')}:{said.get('target', '')}{mode}".lstrip(":")
    source, colon, rest = str(said).partition(":")
    if not colon or not source.startswith((".", "~")):
        return str(said)
    path = (file.parent / Path(source).expanduser()).resolve()
    if not path.exists():
        raise Mistake(f"{where}.volumes: there is no {path}")
    return f"{path}:{rest}"


def _environment(said: Mapping[str, Any], file: Path, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _several(said.get("env_file") or []):
        path = file.parent / name
        if not path.is_file():
            raise Mistake(f"{where}.env_file: there is no {path}")
        found |= variables_of(path)
    given = said.get("environment") or {}
    pairs = given.items() if isinstance(given, dict) else (_pair(str(it)) for it in given)
    for name, value in pairs:
        text = os.environ.get(str(name)) if value is None else _scalar(value)
        if text is not None:
            found[str(name)] = text
    return found


def _pair(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return name, value if equals else None


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ports(said: Mapping[str, Any], where: str) -> Iterator[int]:
    for it in [*(said.get("ports") or ()), *(said.get("expose") or ())]:
        text = str(it.get("target", "") if isinstance(it, dict) else it)
        port, _, kind = text.rpartition(":")[2].partition("/")
        if kind == "udp":
            continue
        if not port.isdecimal():
            raise Mistake(f"{where}: {text} is no single port")
        yield int(port)
