"""Compose files (compose-spec.io): their services, and how each is run as a container."""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, RootModel

from webdyno.config.reading import build, nearest, shown_value
from webdyno.core.errors import UserError
from webdyno.core.format import scalar
from webdyno.core.tables import is_table, long_form, several, table
from webdyno.systems.containers.compose_file import (
    NAME,
    SEVERAL,
    ComposeProject,
    askable,
    read_compose,
    variables_of,
)
from webdyno.systems.containers.compose_relations import (
    Awaited,
    Awaits,
    awaits,
    env_files,
    health_command,
    in_order,
    those_before,
)
from webdyno.systems.containers.compose_rights import (
    held_mounts,
    mounts_of_files,
    rights_of,
    volume_of,
)
from webdyno.systems.containers.engine import Build, heeds
from webdyno.systems.env_files import or_example

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
"""Keys whose values engines take as they are, to run a container."""
SWITCHES = {"read_only": "--read-only", "init": "--init", "privileged": "--privileged"}
OTHERS = {
    *("image", "build", "command", "entrypoint", "environment", "env_file", "volumes", "ports"),
    *("hostname", "links", "networks", "secrets", "configs", "expose", "depends_on", "profiles"),
    *("container_name", "labels", "pull_policy", "healthcheck"),
}
"""Keys that are heeded in other ways, or needn't be."""
BUILD = {"context", "dockerfile", "args", "target"}
Scalar = str | bool | int | float
Words = str | list[Scalar] | None
Several = Scalar | list[Scalar] | dict[str, Scalar] | None


class _BuildForm(BaseModel):
    context: str = "."
    dockerfile: str = "Dockerfile"
    args: list[Scalar] | dict[str, Scalar | None] | None = None
    target: str = ""


class _ServiceForm(BaseModel):
    """Of what form the keys have to be that aren't passed on as they are."""

    image: str | None = None
    build: str | _BuildForm | None = None
    command: Words = None
    entrypoint: Words = None
    environment: dict[str, Scalar | None] | list[Scalar] | None = None
    env_file: str | list[str | dict[str, Any]] | dict[str, Any] | None = None
    volumes: list[str | dict[str, Any]] | None = None
    ports: list[Scalar | dict[str, Any]] | None = None
    expose: list[Scalar] | None = None
    depends_on: list[str] | dict[str, dict[str, Any]] | None = None
    secrets: list[str | dict[str, Any]] | None = None
    configs: list[str | dict[str, Any]] | None = None
    networks: list[str] | dict[str, dict[str, Any] | None] | None = None
    links: list[str] | None = None
    healthcheck: dict[str, Any] | None = None
    privileged: bool = False
    read_only: bool = False
    init: bool = False


class _OptionsForm(RootModel[dict[str, Several]]):
    """Those that are passed on."""


@dataclass(frozen=True)
class ComposeService:
    """A service of the file."""

    name: str
    names: tuple[str, ...]
    """By which others know it as well."""
    image: str
    build: Build | None
    """Instead of an image that is there."""
    environment: dict[str, str]
    options: tuple[str, ...]
    """For the engine that runs it."""
    command: tuple[str, ...]
    ports: tuple[int, ...]
    awaits: Awaits = ""
    """What is waited for before those behind it are started."""
    entrypoint: tuple[str, ...] | None = None
    """In the place of its image's own."""
    health: tuple[str, ...] = ()
    """The command that says whether it is healthy; as its image has it unless given."""


def compose_files(text: str, folder: Path) -> list[Path]:
    """Return the files that a text such as `compose.yaml,compose.prod.yaml` names."""
    return [(folder / name).resolve() for name in text.split(SEVERAL)]


def compose_services(
    files: Sequence[Path],
    front_name: str,
    place: str,
    notify: Callable[[str], None],
    within: Path | None = None,
) -> list[ComposeService]:
    """Read the services of files, each behind those that it depends on, and the front one last.

    `within`: all that they may reach of this machine, as where a revision's author wrote them.
    Raise UserError where the files can't be read, have no such service or reach beyond that.
    """
    project = read_compose(files, place, within)
    file, services = files[0], project.services(front_name)
    for name, service in services.items():
        where = f"{place}: {file}: services.{name}"
        if not NAME.fullmatch(name) or not is_table(service):
            raise UserError(f"{where} is no service")
        if "image" not in service and "build" not in service:
            raise UserError(f"{where} has neither image nor build")
        _check(service, where)
    if within and (rights := ", ".join(rights_of(services, project, within))):
        raise UserError(
            f"{place}: {file.name} of a revision wants rights on this machine: {rights}; have it "
            f"do without, or name the file yourself, as in image:{file.name}"
        )
    front = _front(services, front_name, f"{place}: {file}")
    others = in_order(services, f"{place}: {file}")
    before = those_before(front, services)
    services = {name: keys for name, keys in services.items() if name not in before}
    names = [*(name for name in others if name in services and name != front), front]
    awaited = awaits(services, front, f"{place}: {file}")
    built = [_service(name, services, project, awaited, place) for name in names]
    if within:
        held = held_mounts({each.name: each.options for each in built})
        built = [replace(each, options=(*each.options, *held[each.name])) for each in built]
    notes = list(project.notes)
    if before:
        notes.append(f"not started, since it depends on {front}: {', '.join(sorted(before))}")
    if excluded := list(_excluded_keys(services)):
        notes.append(f"excluded: {', '.join(excluded)}")
    if rights := ", ".join(rights_of(services, project, project.folder)):
        notes.append(f"run as root with rights on this machine: {rights}")
    for note in notes:
        notify(f"{file.name}: {note}")
    return built


def _check(service: Mapping[str, Any], where: str) -> None:
    build(_ServiceForm, dict(service), lambda _: where)
    build(_OptionsForm, {key: service[key] for key in OPTIONS if key in service}, lambda _: where)


def _front(services: Mapping[str, Any], service: str, where: str) -> str:
    """Return the service that clients ask: the named one, or the only one that it can be."""
    if service in services:
        return service
    if service:
        raise UserError(f"{where} has no service {service}; {nearest(service, services)}")
    names = askable(services)
    if len(names) == 1:
        return names[0]
    example = f"{where.rpartition('/')[2]}#{next(iter(names), 'web')}"
    raise UserError(f"{where}: say which service is asked, such as image:{example}")


def _excluded_keys(services: Mapping[str, Any]) -> Iterator[str]:
    known = OPTIONS.keys() | SWITCHES.keys() | OTHERS
    for name, service in services.items():
        yield from (f"{name}.{key}" for key in service if key not in known and key[:2] != "x-")
        yield from (f"{name}.build.{key}" for key in table(service, "build") if key not in BUILD)


def _service(
    name: str, services: Mapping[str, Any], project: ComposeProject, awaited: Awaited, place: str
) -> ComposeService:
    keys = services[name]
    where = f"{place}: {project.files[0]}: services.{name}"
    options = [
        f"{OPTIONS[key]}={value}" for key in keys.keys() & OPTIONS for value in several(keys[key])
    ]
    options += [flag for key, flag in SWITCHES.items() if keys.get(key) is True]
    options += [
        f"--volume={volume_of(volume, project.folder, where)}"
        for volume in keys.get("volumes") or ()
    ]
    options += [f"--volume={mount}:ro" for mount in mounts_of_files(keys, project, where)]
    entry = tuple(_words(keys["entrypoint"], where)) if "entrypoint" in keys else None
    return ComposeService(
        name=name,
        names=tuple(_names_of(name, services)),
        image=str(keys.get("image", "")),
        build=_build(keys["build"], project) if keys.get("build") else None,
        environment=_environment(keys, project, where),
        options=tuple(sorted(options)),
        command=tuple(_words(keys.get("command") or (), where)),
        ports=tuple(_ports(keys, where)),
        awaits=awaited.get(name, ""),
        entrypoint=entry,
        health=health_command(keys, where),
    )


def _names_of(name: str, services: Mapping[str, Any]) -> Iterator[str]:
    """Return other names of a service: its own, those in networks, and those in links."""
    keys = services[name]
    for key in ("container_name", "hostname"):
        if keys.get(key):
            yield str(keys[key])
    for network in table(keys, "networks").values():
        yield from several((network or {}).get("aliases") or [])
    for other in services.values():
        for link in other.get("links") or ():
            linked, colon, alias = str(link).partition(":")
            if linked == name and colon:
                yield alias


def _words(value: object, where: str) -> list[str]:
    try:
        return shlex.split(value) if isinstance(value, str) else several(value or [])
    except ValueError as error:
        raise UserError(f"{where}: {value!r} is no command: {str(error).lower()}") from None


def _build(keys: object, project: ComposeProject) -> Build:
    form = long_form(keys, "context")
    context = (project.folder / str(form.get("context", "."))).resolve()
    arguments = _with_values(form.get("args"), project.variables)
    # A revision's author knows no secrets of ours, and says nothing of the engine's environment.
    hidden = {
        name: value
        for name, value in arguments.items()
        if project.within is None
        and name.isidentifier()
        and (os.environ.get(name, value) == value or not heeds(name))
    }
    given = [name if name in hidden else f"{name}={value}" for name, value in arguments.items()]
    options = [f"--build-arg={argument}" for argument in given]
    if "target" in form:
        options.append(f"--target={form['target']}")
    file = context / str(form.get("dockerfile", "Dockerfile"))
    return Build(file, context, tuple(options), hidden, project.within is not None)


def _environment(keys: Mapping[str, Any], project: ComposeProject, where: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    for form in env_files(keys):
        path = or_example(project.folder / str(form.get("path")))
        if form.get("required") is not False or path.is_file():
            variables |= variables_of(path, f"{where}.env_file", project.environment)
    return variables | _with_values(keys.get("environment"), project.variables)


def _with_values(names: object, variables: Mapping[str, str]) -> dict[str, str]:
    """Return names with values; those without one have that of a variable, if there is one."""
    if is_table(names):
        pairs = list(names.items())
    else:
        parts = (text.partition("=") for text in several(names or []))
        pairs = [(name, value if equals else None) for name, equals, value in parts]
    values = {}
    for name, value in pairs:
        text = variables.get(str(name)) if value is None else scalar(value)
        if text is not None:
            values[str(name)] = text
    return values


def _ports(keys: Mapping[str, Any], where: str) -> Iterator[int]:
    for entry in [*(keys.get("ports") or ()), *(keys.get("expose") or ())]:
        text = str(long_form(entry, "target").get("target", ""))
        port, _, kind = text.rpartition(":")[2].partition("/")
        port = port.partition("-")[0]  # of several the first
        if kind == "udp":
            continue
        if not (port.isascii() and port.isdecimal() and len(port) <= 5):
            raise UserError(f"{where}: {shown_value(text)} is no single port")
        if not 1 <= int(port) <= 65_535:
            raise UserError(f"{where}: {text} is no port; they go from 1 to 65535")
        yield int(port)
