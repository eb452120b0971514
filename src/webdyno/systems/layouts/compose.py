"""Compose files: which of their services is asked, and which are databases and tools."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from webdyno.core.errors import UserError
from webdyno.core.tables import Table, as_list, as_table, long_form, read_text, table
from webdyno.systems.containers.compose_file import (
    USUAL_FILES,
    askable,
    plain_values,
    read_compose,
)
from webdyno.systems.layouts.app import FoundApp, first_of

OF_OTHERS = re.compile(
    r"^(?:postgres\w*|postgis|timescaledb\S*|mysql\S*|mariadb|percona\S*|mongo\w*|redis\S*|valkey|keydb"
    r"|memcached|rabbitmq|(?>\S*?(?:kafka|zookeeper))\S*+|nats|eclipse-mosquitto|pgbouncer"
    r"|elasticsearch|opensearch|qdrant|minio|localstack|keycloak|vault|adminer|pgadmin4|phpmyadmin"
    r"|mongo-express|redis-?commander|redisinsight|mailhog|mailpit|maildev|prometheus|grafana|jaeger\S*"
    r"|all-in-one|otel/\S*|opentelemetry-collector\S*|dynamodb-local|portainer\S*)"
)
"""Images that applications need, or that look into those."""
PORTS_OF_OTHERS = {
    *("3306", "5432", "6379", "27017", "11211", "5672", "9092", "2181", "1883", "1433", "4222"),
}
IS_COMPOSE = re.compile(r"(?:docker-)?compose(?!\S*test)[\w.-]*\.ya?ml$")
COMPOSE_READY_WITHIN_S = 120
"""An image's database is set up before what is asked starts."""


def find_compose(folder: Path) -> FoundApp | None:
    """Take the service that clients ask, where there is only one that it can be."""
    name = first_of(folder, *USUAL_FILES)
    if name is None:
        return None
    try:
        project = read_compose([folder / name], name)
    except UserError as error:
        return FoundApp(name, doubts=(str(error),))
    app = FoundApp(name, doubts=tuple(project.notes))
    services = project.services()
    own = {service: keys for service, keys in services.items() if not is_of_others(keys)}
    if services and not own:
        only = f"{name} has only what applications need: {', '.join(services)}"
        return FoundApp(name, doubts=(*project.notes, only))
    if len(services) > 1:
        app = replace(app, ready_within_s=COMPOSE_READY_WITHIN_S)
    choices = {service: replace(app, image=f"{name}#{service}") for service in fronts_of(own)}
    if len(choices) == 1:
        return next(iter(choices.values()))
    several_of = f"{name} has several services that could be asked" if choices else ""
    return FoundApp(name, several=several_of, choices=choices)


def fronts_of(own: Mapping[str, Any]) -> list[str]:
    """Return the services that clients may ask; of several the one that is built, not fetched."""
    names = askable(own)
    built = [name for name in names if as_table(own[name]).get("build")]
    return built if len(built) == 1 else names


def images_behind(folder: Path) -> dict[str, str]:
    """Return the images that what is built of a folder depends on, by a Compose file.

    Each is as it stands there, by the last part of its name.
    """
    name = next((path.name for path in sorted(folder.iterdir()) if IS_COMPOSE.match(path.name)), "")
    services = services_as_written(folder / name)
    top = folder.resolve()
    own = [as_table(each) for each in services.values() if context_of(each, folder) == top]
    images, seen = dict[str, str](), set[str]()
    while own:
        service = own.pop()
        if behind := _image_name(service):
            images[behind] = str(service["image"])
        named = service.get("depends_on")
        for other in map(str, named if isinstance(named, list | dict) else ()):
            if other not in seen and other in services:
                seen.add(other)
                own.append(as_table(services[other]))
    return images


def services_as_written(file: Path) -> Table:
    """Return the services of a Compose file as it stands there; none where it can't be read.

    What others set, or keep in a file of their own, isn't filled in.
    """
    try:
        return table(plain_values(read_text(file) or ""), "services")
    except (ValueError, RecursionError, yaml.YAMLError):
        return {}


def context_of(service: object, around: Path) -> Path | None:
    """Return the folder that a service's image is made of; None where it isn't built."""
    keys = as_table(service).get("build")
    context = str(long_form(keys, "context").get("context") or ".")
    return (around / context).resolve() if keys else None


def _image_name(service: Table) -> str:
    """Return the last part of an image's name, without its version; empty where it is built."""
    text = "" if service.get("build") else str(service.get("image", ""))
    return text.rpartition("/")[2].partition(":")[0]


def is_of_others(service: object) -> bool:
    """Whether it is a database, a queue, or a tool for one, by its image or its ports."""
    keys = as_table(service)
    if OF_OTHERS.fullmatch(_image_name(keys)):
        return True
    published = (long_form(port, "target").get("target") for port in as_list(keys.get("ports")))
    # `8080:80/tcp` is port 80 inside.
    ports = {str(port).partition("/")[0].rpartition(":")[2] for port in published}
    return bool(ports) and ports <= PORTS_OF_OTHERS
