"""`image:NAME`, `image:DIR`, `image:compose.yaml#SERVICE`: containers that serve HTTP.

The containers of a variant have a network of their own, which leads nowhere else, so that each
variant has the port that its image listens on to itself; no proxy leads there. All of that ends
with the variant, kill -9 included.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.service import Service
from webdyno.core.text import SECRET
from webdyno.host.users import stranger_of
from webdyno.systems.command import is_image, variables_of_services
from webdyno.systems.containers.choice import engine_for
from webdyno.systems.containers.compose import ComposeService, compose_files, compose_services
from webdyno.systems.containers.compose_rights import ELSEWHERE
from webdyno.systems.containers.engine import SCRIPT, Build, Container, Engine, variables_file
from webdyno.systems.repository import Repository
from webdyno.systems.target import GeneratedService, TargetSpec, verbatim

MARKS = ("{{ server.host }}", "{{ server.client }}")
USUAL_PORTS = (80, 8080)
"""Where several are exposed, these come first; the last where none is."""
BUILD_FILES = ("Containerfile", "Dockerfile")
COMPOSE_ENDINGS = (".yaml", ".yml")
WEB = "web"
VALUE = "WEBDYNO_VALUE_"
"""Variables of the start script, by number: nothing that it runs heeds such names."""
NOTHING: Mapping[str, str] = {}


def as_template(text: str) -> str:
    """Return a template in which nothing but our own marks is filled in."""
    for mark in MARKS:
        if mark in text:
            return mark.join(as_template(part) for part in text.split(mark))
    return verbatim(text)


def refuse_containers_of_others(repository: Repository, place: str) -> None:
    """Raise UserError for a repository of another user; to be asked before it is built.

    A build could put another folder in its place.
    """
    his = repository.user
    known = his.name if his and not his.called_sudo else None
    if stranger := known or stranger_of(repository.top):
        raise UserError(
            f"{place}: who starts containers can do what root can, and the repository belongs to "
            f"{stranger}: measure a copy of it that is yours"
        )


def check_containers(text: str, folder: Path, top: Path, place: str) -> None:
    """Raise UserError where containers of a revision would have more of this machine than it.

    `text` names them, `top` is the revision's folder.
    """
    name, _, service = text.partition("#")
    if ELSEWHERE.match(name):
        raise UserError(f"{place}: {name} leads out of the revision")
    path = (folder / name).resolve()
    for each in (path, ((path.is_dir() and _build_file(path)) or path).resolve()):
        if not each.is_relative_to(top):
            raise UserError(f"{place}: {name} leads out of the revision, to {each}")
    if _is_compose(text, folder):
        compose_services(compose_files(name, folder), service, place, lambda _: None, top)


def _is_compose(text: str, folder: Path) -> bool:
    name, hash_mark, _ = text.partition("#")
    path = (folder / name).resolve()
    return bool(hash_mark) or (path.is_file() and path.suffix in COMPOSE_ENDINGS)


def make(spec: TargetSpec) -> GeneratedService:
    """Have the images there, built or fetched, and a script that runs them."""
    if spec.testbed == "netns":
        raise UserError(
            f"{spec.place}: containers have a network of their own and can't be in that of "
            "--testbed netns; leave that out"
        )
    if images := list(filter(is_image, spec.keys.services.values())):
        raise UserError(
            f"{spec.place}: {images[0]} can't stand behind a container, which finds others by its "
            "Compose file: image:compose.yaml#SERVICE"
        )
    known = _known_service(spec)
    usual = known.image if known else None
    variables = _variables_of_script(spec) | (usual.environment if usual else {})
    engine, containers = _containers(spec)
    *others, front = containers
    port = usual.port if usual else asked_port(front, spec)
    inside = bool(spec.keys.services)
    starts = engine.start_files(spec.written, containers, inside=inside)
    texts = dict(starts.texts)
    texts[SCRIPT] = _writing_values(variables, front) + texts[SCRIPT]
    given = spec.keys.environment
    for other in others:
        texts[variables_file(other.name)] = _variables(other, spec)
    own = {"PORT": str(port), **given}
    texts[variables_file(front.name)] = _variables(front, spec, own, variables)
    return GeneratedService(
        spec.service(
            (),
            {
                "container_port": port,
                **({"services_inside": True} if inside else {}),
                **starts.own,
            },
            needs={
                name: need.model_dump(exclude_defaults=True) for name, need in engine.needs.items()
            },
            files={name: name for name in texts},
            start=list(starts.start),
            version=", ".join(f"{each.name} {each.image.id[:12]}" for each in containers),
            environment={
                f"{VALUE}{number}": text for number, text in enumerate(variables.values())
            },
            credentials=known.credentials if known else {},
            variables=known.variables if known else {},
            facts={
                "containers": f"{engine.title} {engine.version}",
                "network": engine.network,
            },
        ),
        {
            name: as_template(text) if name == SCRIPT else verbatim(text)
            for name, text in texts.items()
        },
        behind=spec.keys.services,
    )


def _known_service(spec: TargetSpec) -> Service | None:
    """Return the service of the catalogue that an image behind a program is as well, if any."""
    name = re.split("[:@]", spec.text.rpartition("/")[2])[0]
    for service in spec.services.values() if spec.is_behind else ():
        if service.image and name in service.image.names:
            return service
    return None


def _variables_of_script(spec: TargetSpec) -> dict[str, str]:
    """Return what the script has to write: secrets, which no kept file may show, and services."""
    given = spec.keys.environment
    secrets = {name: verbatim(text) for name, text in given.items() if SECRET.search(text)}
    return secrets | variables_of_services(spec)


def _writing_values(variables: Iterable[str], front: Container) -> str:
    """Return lines of shell that add variables to a container's file.

    The script doesn't get them by their names, which a revision's author chose: programs and
    libraries take some for orders, and it may run as root.
    """
    pairs = "".join(
        f' {shlex.quote(name)} "${VALUE}{number}"' for number, name in enumerate(variables)
    )
    return f"printf '%s=%s\\n'{pairs} >>{variables_file(front.name)} || exit 1\n" if pairs else ""


def _containers(spec: TargetSpec) -> tuple[Engine, list[Container]]:
    """Return the containers of a variant in the order of their starts; clients ask the last."""
    if _is_compose(spec.text, spec.folder):
        name, _, service = spec.text.partition("#")
        files = compose_files(name, spec.folder)
        services = compose_services(files, service, spec.place, spec.notify, spec.within)
        engine = engine_for(spec)
        return engine, [_of_service(service, files[0].name, spec, engine) for service in services]
    source = _build_source(spec)
    engine = engine_for(spec, image=None if source else spec.text)
    if source is None:
        return engine, [Container(WEB, engine.find(spec.text, spec.notify))]
    return engine, [Container(WEB, engine.build(spec.written, source, spec.notify))]


def _of_service(service: ComposeService, file: str, spec: TargetSpec, engine: Engine) -> Container:
    """Build or find a service's image; raise UserError where its health is awaited but unknown."""
    if service.build:
        image = engine.build(f"{service.name} of {file}", service.build, spec.notify)
    else:
        image = engine.find(service.image, spec.notify)
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
        entrypoint=service.entrypoint,
        command=service.command,
        ports=service.ports,
        awaits=service.awaits,
        health=health,
    )


def _build_source(spec: TargetSpec) -> Build | None:
    """Return how an image is built from a file or folder; None for an image's name."""
    name = spec.text
    path = (spec.folder / name).resolve()
    if path.is_dir() and (name.startswith((".", "/")) or "/" in name or _build_file(path)):
        file = _build_file(path)
        if file is None:
            raise UserError(f"{spec.place}: there is no {' and no '.join(BUILD_FILES)} in {path}")
        return Build(file, path, is_revision=spec.within is not None)
    if path.is_file():
        return Build(path, path.parent, is_revision=spec.within is not None)
    if name.startswith((".", "/")):
        raise UserError(f"{spec.place}: there is no file or folder {path}")
    return None


def _build_file(folder: Path) -> Path | None:
    return next((folder / name for name in BUILD_FILES if (folder / name).is_file()), None)


def asked_port(front: Container, spec: TargetSpec) -> int:
    """Return the port that clients ask: that of PORT, else one that is exposed."""
    text = {**front.image.environment, **front.environment, **spec.keys.environment}.get("PORT")
    if text:
        if not re.fullmatch("[0-9]{1,5}", text) or not 0 < int(text) < 65536:
            raise UserError(f"{spec.place}: PORT={text:.60} is no port")
        return int(text)
    exposed = front.ports or front.image.ports
    port = next(
        (port for port in USUAL_PORTS if port in exposed), next(iter(exposed), USUAL_PORTS[-1])
    )
    if len(exposed) != 1:
        why = "of those that it exposes" if exposed else "since it exposes none"
        otherwise = "a Compose file's ports say" if spec.is_behind else "--env PORT=N says"
        spec.notify(f"{spec.written} is asked on port {port}, {why}; {otherwise} otherwise")
    return port


def _variables(
    container: Container,
    spec: TargetSpec,
    more: Mapping[str, str] = NOTHING,
    later: Collection[str] = (),
) -> str:
    """Return a container's variables as engines read them, but for those that come later."""
    variables = {**container.environment, **more}
    for name, value in variables.items():
        if "\n" in value:
            raise UserError(
                f"{spec.place}: {name} has several lines, which containers can't be given"
            )
    return "".join(f"{name}={value}\n" for name, value in variables.items() if name not in later)
