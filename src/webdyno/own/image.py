"""`image:NAME`, `image:DIR`, `image:compose.yaml#SERVICE`: containers that serve HTTP.

The containers of a variant share a network namespace of their own, so that each variant has the
port that its image listens on to itself; a pair of virtual Ethernet devices leads there, and no
proxy. Podman runs in a mount namespace of its own and keeps what it writes in the variant's folder.
All of that, and the network, ends with the processes, kill -9 included.
"""

from collections.abc import Mapping
from pathlib import Path

from webdyno.model.errors import UserError
from webdyno.model.text import SECRET
from webdyno.own.command import told_of_services
from webdyno.own.compose import ComposeService, compose_files, compose_services
from webdyno.own.containers import SCRIPT, Container, container_files, variables_file
from webdyno.own.podman import NEEDS, Image, Podman, podman
from webdyno.own.target import GeneratedService, TargetSpec, verbatim

MARKS = ("{{ server.host }}", "{{ server.client }}")
USUAL_PORTS = (80, 8080)
"""Where several are exposed, these come first; the last where none is."""
BUILD_FILES = ("Containerfile", "Dockerfile")
COMPOSE_ENDINGS = (".yaml", ".yml")
WEB = "web"
NOTHING: Mapping[str, str] = {}


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
    texts = container_files(spec.written, engine, containers)
    variables = {name: verbatim(text) for name, text in _secrets(spec).items()} | told_of_services(
        spec
    )
    for container in containers:
        texts[variables_file(container.name)] = (
            _variables(container, spec, {"PORT": str(port)} | spec.keys.environment, variables)
            if container is front
            else _variables(container, spec)
        )
    inside = bool(spec.keys.services)
    joins = ("/usr/bin/nsenter", "--net={{ server.network }}") if inside else ()
    return GeneratedService(
        spec.service(
            (),
            {"container_port": port, **({"services_inside": True} if inside else {})},
            needs={name: need.model_dump(exclude_defaults=True) for name, need in NEEDS.items()},
            files={name: name for name in texts},
            start=[
                *("/usr/bin/unshare", "--mount", *([] if inside else ["--net"]), *joins, "/bin/sh"),
                f"{{{{ server.folder }}}}/{SCRIPT}",
            ],
            version=", ".join(
                f"{container.name} {container.image.id[:12]}" for container in containers
            ),
            environment=variables,
            facts={"network": "its own, by a pair of virtual Ethernet devices"},
        ),
        {
            name: as_template(text) if name == SCRIPT else verbatim(text)
            for name, text in texts.items()
        },
        behind=spec.keys.services,
    )


def _containers(spec: TargetSpec, engine: Podman) -> list[Container]:
    """Give the containers of a variant, in the order of their starts; what is asked is the last."""
    name, hash_mark, service = spec.text.partition("#")
    path = (spec.folder / name).resolve()
    if hash_mark or (path.is_file() and path.suffix in COMPOSE_ENDINGS):
        files = compose_files(name, spec.folder)
        services = compose_services(files, service, spec.place, spec.tell)
        return [_of_service(service, files[0].name, spec, engine) for service in services]
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
        names=service.names,
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
    text = {**front.image.environment, **front.environment, **spec.keys.environment}.get("PORT")
    if text:
        if not text.isdecimal() or not 0 < int(text) < 65536:
            raise UserError(f"{spec.place}: PORT={text} is no port")
        return int(text)
    exposed = front.ports or front.image.ports
    port = next(
        (port for port in USUAL_PORTS if port in exposed), next(iter(exposed), USUAL_PORTS[-1])
    )
    if len(exposed) != 1:
        why = "of those that it exposes" if exposed else "since it exposes none"
        spec.tell(f"{spec.written} is asked on port {port}, {why}; --env PORT=N says otherwise")
    return port


def _variables(
    container: Container,
    spec: TargetSpec,
    more: Mapping[str, str] = NOTHING,
    extra: Mapping[str, str] = NOTHING,
) -> str:
    """Give a container's variables as Podman reads them; what is `told` it takes from its own."""
    variables = {**container.environment, **more}
    for name, value in variables.items():
        if "\n" in value:
            raise UserError(f"{spec.place}: {name} has several lines, which Podman can't be given")
    return "".join(
        f"{name}\n" if name in extra else f"{name}={variables[name]}\n"
        for name in {**variables, **extra}
    )


def _secrets(spec: TargetSpec) -> dict[str, str]:
    """Give the variables that Podman is started with, since no file may show them."""
    return {name: value for name, value in spec.keys.environment.items() if SECRET.search(value)}
