"""`image:NAME`, `image:DIR`, `image:compose.yaml#SERVICE`: containers that serve HTTP.

The containers of a variant share a network namespace of their own, so that each variant has the
port that its image listens on to itself; a pair of virtual Ethernet devices leads there, and no
proxy. Podman runs in a mount namespace of its own and keeps what it writes in the variant's folder.
All of that, and the network, ends with the processes, kill -9 included.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.model.errors import UserError
from webdyno.model.service import ID_FILE
from webdyno.model.text import SECRET
from webdyno.own.compose import Awaits, ComposeService, compose_files, compose_services
from webdyno.own.podman import NEEDS, Image, Podman, podman
from webdyno.own.target import GeneratedService, TargetSpec, verbatim

SCRIPT = "start.sh"
HEAD = """\
# Starts {written}, in a network of its own that ends with it.
set -eu
here=$PWD
group=/webdyno-$(basename "$(dirname "$here")")/$(basename "$here")
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
link=$(echo {{{{ server.host }}}} | tr . -)
outside="nsenter --net=/proc/$PPID/ns/net"

ip link add eth0 type veth peer name "$link" netns $PPID
ip address add {{{{ server.host }}}} peer {{{{ server.client }}}} dev eth0
ip link set lo up
ip link set eth0 up
$outside ip address add {{{{ server.client }}}} peer {{{{ server.host }}}} dev "$link"
$outside ip link set "$link" up
mount -t tmpfs none /dev/shm    # Podman keeps its locks there, for all containers of the machine

podman_run() {{
    exec {run} --cgroup-parent "$group" --cpuset-cpus "$cpus" "$@"
}}
"""
SEVERAL = """\
# run_named NAME WORDS…: a container to its end, its lines with its name before them
run_named() {{
    name=$1
    shift
    {{
        code=0
        (podman_run "$@") || code=$?
        echo "$code" >"$here/$name.code"
    }} 2>&1 | sed -u "s/^/$name | /"
}}

# beside NAME WORDS…: a container whose end ends all, so that nobody measures what is left
beside() {{
    (
        run_named "$@"
        echo "webdyno: the service $1 ended by itself with exit code $(cat "$here/$1.code")"
        echo "webdyno: one that may end is depended on with service_completed_successfully"
        kill -TERM $$
    ) &
}}

# ended NAME WORDS…: a container that has to end well before the next ones start
ended() {{
    run_named "$@"
    code=$(cat "$here/$1.code")
    [ "$code" = 0 ] || {{
        echo "webdyno: the service $1, which others wait for, ended with exit code $code and not 0"
        exit 1
    }}
}}

# healthy NAME WORDS…: waits until a command in a container succeeds
healthy() {{
    name=$1 before=
    shift
    echo "webdyno: waiting until $name is healthy: $*"
    until said=$({podman} exec "$name" "$@" 2>&1); do
        [ "$said" = "$before" ] || echo "webdyno: $name isn't healthy: $said"
        before=$said
        sleep 0.2
    done
}}
"""
NAMED_VOLUME = re.compile(r"--volume=([A-Za-z0-9][\w.-]*):")
MARKS = ("{{ server.host }}", "{{ server.client }}")
USUAL_PORTS = (80, 8080)
"""Where several are exposed, these come first; the last where none is."""
BUILD_FILES = ("Containerfile", "Dockerfile")
COMPOSE_ENDINGS = (".yaml", ".yml")
WEB = "web"


@dataclass(frozen=True)
class Container:
    """One container of a variant."""

    name: str
    image: Image
    environment: dict[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    """For `podman run`."""
    command: Sequence[str] = ()
    """In the place of the image's own."""
    ports: Sequence[int] = ()
    """Where it says that it listens; as its image says unless given."""
    awaits: Awaits = ""
    """What is waited for before those behind it are started."""
    health: Sequence[str] = ()
    """The command that tells whether it is healthy."""


def script(written: str, engine: Podman, containers: Sequence[Container]) -> str:
    """Give the script; what is asked is the last container, and becomes the script's process."""
    one_line = written.replace("\n", " ")
    parts = [HEAD.format(written=one_line, run=engine.run_words())]
    if len(containers) > 1:
        parts.append(SEVERAL.format(podman=engine.here_words()))
    # Containers that are started at once would each want to make it.
    parts += [f"{engine.here_words()} volume create {name} >&2\n" for name in _shared(containers)]
    *others, front = containers
    for it in others:
        how = "ended" if it.awaits == "ended" else "beside"
        parts.append(f"{how} {it.name} {_words(it, containers)}\n")
        if it.awaits == "healthy":
            parts.append(f"healthy {it.name} {shlex.join(it.health)}\n")
    parts.append(f"podman_run {_words(front, containers)}\n")
    return "\n".join(parts)


def _words(container: Container, containers: Sequence[Container]) -> str:
    hosts = [f"--add-host={it.name}:127.0.0.1" for it in containers if len(containers) > 1]
    return shlex.join(
        [
            *("--name", container.name, "--cidfile", f"{container.name}{ID_FILE}"),
            *(*hosts, "--env-file", variables_file(container.name)),
            *(*container.options, container.image.id, *container.command),
        ]
    )


def _shared(containers: Sequence[Container]) -> Iterator[str]:
    """Name the volumes that several containers have."""
    owners: dict[str, set[str]] = {}
    for it in containers:
        for option in it.options:
            if named := NAMED_VOLUME.match(option):
                owners.setdefault(named[1], set()).add(it.name)
    return (name for name, of in owners.items() if len(of) > 1)


def variables_file(name: str) -> str:
    return f"{name}.env"


def as_template(text: str) -> str:
    """Have nothing but our own marks filled in."""
    for mark in MARKS:
        if mark in text:
            return mark.join(as_template(part) for part in text.split(mark))
    return verbatim(text)


def make(spec: TargetSpec) -> GeneratedService:
    """Have the images there, built or fetched, and a script that runs them."""
    if spec.testbed == "netns":
        raise UserError(
            f"{spec.place}: containers have a network of their own and can't be in that of "
            "--testbed netns; leave that out"
        )
    engine = podman(spec.provide, spec.tell)
    containers = _containers(spec, engine)
    front = containers[-1]
    port = asked_port(front, spec)
    texts = {SCRIPT: script(spec.written, engine, containers)}
    for it in containers:
        texts[variables_file(it.name)] = _variables(
            it, spec, {"PORT": str(port)} if it is front else {}
        )
    return GeneratedService(
        spec.service(
            (),
            {"container_port": port, "container": front.name},
            needs={name: need.model_dump(exclude_defaults=True) for name, need in NEEDS.items()},
            files={name: name for name in texts},
            start=[
                *("/usr/bin/unshare", "--net", "--mount", "/bin/sh"),
                f"{{{{ server.folder }}}}/{SCRIPT}",
            ],
            version=", ".join(f"{it.name} {it.image.id[:12]}" for it in containers),
            environment={name: verbatim(text) for name, text in _secrets(spec).items()},
            facts={"network": "its own, by a pair of virtual Ethernet devices"},
        ),
        {
            name: as_template(text) if name == SCRIPT else verbatim(text)
            for name, text in texts.items()
        },
    )


def _containers(spec: TargetSpec, engine: Podman) -> list[Container]:
    """Give the containers of a variant, in the order of their starts; what is asked is the last."""
    name, hash_mark, service = spec.text.partition("#")
    path = (spec.folder / name).resolve()
    if hash_mark or (path.is_file() and path.suffix in COMPOSE_ENDINGS):
        files = compose_files(name, spec.folder)
        services = compose_services(files, service, spec.place, spec.tell)
        return [_of_service(it, files[0].name, spec, engine) for it in services]
    return [Container(WEB, _image(spec, engine, name, path))]


def _of_service(service: ComposeService, file: str, spec: TargetSpec, engine: Podman) -> Container:
    """Have a service's image there.

    Raise UserError where its health is awaited and can't be told.
    """
    if build := service.build:
        called = f"{service.name} of {file}"
        image = engine.build(called, build.file, build.context, build.options, spec.tell)
    else:
        image = engine.find(service.image, spec.tell)
    health = service.health or image.health
    if service.awaits == "healthy" and not health:
        raise UserError(
            f"{spec.place}: {file}: others wait until {service.name} is service_healthy, but "
            "neither the file nor its image has a healthcheck; give it one"
        )
    return Container(
        name=service.name,
        image=image,
        environment=service.environment,
        options=service.options,
        command=service.command,
        ports=service.ports,
        awaits=service.awaits,
        health=health,
    )


def _image(spec: TargetSpec, engine: Podman, name: str, path: Path) -> Image:
    """Build what is a file or a folder; else it is an image's name."""
    if path.is_dir() and (name.startswith((".", "/")) or "/" in name or _build_file(path)):
        file = _build_file(path)
        if file is None:
            raise UserError(f"{spec.place}: there is no {' and no '.join(BUILD_FILES)} in {path}")
        return engine.build(spec.written, file, path, (), spec.tell)
    if path.is_file():
        return engine.build(spec.written, path, path.parent, (), spec.tell)
    if name.startswith((".", "/")):
        raise UserError(f"{spec.place}: there is no file or folder {path}")
    return engine.find(name, spec.tell)


def _build_file(folder: Path) -> Path | None:
    return next((folder / name for name in BUILD_FILES if (folder / name).is_file()), None)


def asked_port(front: Container, spec: TargetSpec) -> int:
    """Give the port that is asked: what PORT says, else what is exposed."""
    said = {**front.image.environment, **front.environment, **spec.keys.environment}.get("PORT")
    if said:
        if not said.isdecimal() or not 0 < int(said) < 65536:
            raise UserError(f"{spec.place}: PORT={said} is no port")
        return int(said)
    exposed = front.ports or front.image.ports
    port = next((it for it in USUAL_PORTS if it in exposed), next(iter(exposed), USUAL_PORTS[-1]))
    if len(exposed) != 1:
        why = "of those that it exposes" if exposed else "since it exposes none"
        spec.tell(f"{spec.written} is asked on port {port}, {why}; --env PORT=N says otherwise")
    return port


def _variables(container: Container, spec: TargetSpec, more: dict[str, str]) -> str:
    variables = {**container.environment, **more}
    secrets = _secrets(spec) if more else {}
    if more:  # it is the front, which the variant's own variables are for
        variables |= spec.keys.environment
    for name, value in variables.items():
        if "\n" in value:
            raise UserError(f"{spec.place}: {name} has several lines, which Podman can't be given")
    return "".join(
        f"{name}\n" if name in secrets else f"{name}={value}\n"  # as Podman itself has it
        for name, value in variables.items()
    )


def _secrets(spec: TargetSpec) -> dict[str, str]:
    """Give the variables that Podman is started with, since no file may show them."""
    return {name: it for name, it in spec.keys.environment.items() if SECRET.search(it)}
