"""Services behind an application but for SQL databases and Redis: started, or only named."""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import read_text
from webdyno.systems.containers import choice
from webdyno.systems.env_files import ENV_FILE
from webdyno.systems.layouts.app import FoundApp, Hindrance, first_place, sources
from webdyno.systems.layouts.compose import images_behind
from webdyno.systems.layouts.databases import (
    NAMED_ADDRESS,
    NAMED_IN_SOURCES,
    NAMES_DRIVER,
    of_prisma,
    with_exports,
)
from webdyno.systems.layouts.packages import DRIVERS, SERVERS, build_files_of_jvm, packages_of
from webdyno.systems.layouts.settings import PLAIN_VALUE, example_of
from webdyno.systems.layouts.variables import variables_read

NOTHING = re.compile(r"(?!)")
URLS = re.compile(r"\w{0,40}(?:DATABASE|DB|POSTGRES)_URL")


class Started(NamedTuple):
    """How webdyno starts a service."""

    service: str
    """Of the catalog."""
    roles: tuple[str, ...]
    """The first that nothing else has; of names that no application's own variables begin with."""
    url: str
    """The variable with its whole address."""
    schemes: str
    """Of addresses, a pattern."""
    port: int
    """Where it usually listens, which sources may have written into them."""
    program: str = ""
    """Without it on this machine it is a container; no package of the distribution has it."""
    image: str = ""
    """That container, where no Compose file names one."""
    has_users: bool = True
    of_spring: tuple[str, Mapping[str, str]] = ("(?!)", {})
    """What a build file names where Spring asks it; variables that say where, with values."""


class Other(NamedTuple):
    """A service, by what shows that an application needs it."""

    packages: re.Pattern[str] = NOTHING
    """What a list of packages names for it."""
    image: re.Pattern[str] = NOTHING
    """The name of its image, where a Compose file has it behind the application."""
    variables: re.Pattern[str] = NOTHING
    """An application's own that say where it is."""
    started: Started | None = None
    """None where webdyno doesn't start it."""
    is_database: bool = False
    """Which applications may have in the place of another one."""
    is_by_https: bool = False
    """Whether its drivers ask it over HTTPS, which no database here speaks."""


OTHERS = {
    "MongoDB": Other(
        re.compile(
            r"mongoose|['\"]mongodb['\"]|pymongo|\bmotor\b|beanie|mongoid|mongo-driver|data-mongodb"
            r"|mongoengine"
        ),
        re.compile(r"mongo(?:db\S*)?"),
        re.compile(
            r"(?:\w{1,40}_)?MONGO(?!_EXPRESS)\w*"
            r"|(?:\w{1,40}_)?(?:DB|DATABASE)_(?:HOST|PORT|USER\w*|PASS\w*|NAME|CONNECTION|UR[IL])"
        ),
        Started(
            service="mongodb",
            roles=("db", "documents"),
            url="MONGODB_URI",
            schemes=r"mongodb(?:\+srv)?",
            port=27017,
            program="mongod",
            image="mongo:7",
            has_users=False,
            of_spring=(
                "data-mongodb",
                {  # before Spring Boot 4, and since
                    "SPRING_DATA_MONGODB_URI": "$MONGODB_URI",
                    "SPRING_MONGODB_URI": "$MONGODB_URI",
                },
            ),
        ),
        is_database=True,
    ),
    "RabbitMQ": Other(
        re.compile(
            r"amqplib|amqp091|amqp-connection|go-rabbitmq|streadway/amqp|aio[-_]pika|\bpika\b|\bbunny\b"
            r"|lapin|starter-amqp"
        ),
        re.compile(r"rabbitmq"),
        re.compile(r"\w{0,40}(?:RMQ|AMQP|RABBIT)\w{0,40}"),
        Started(
            service="rabbitmq",
            roles=("messages",),
            url="RABBITMQ_URL",
            schemes="amqps?",
            port=5672,
            of_spring=(
                "starter-amqp",
                {
                    "SPRING_RABBITMQ_HOST": "$RABBITMQ_HOST",
                    "SPRING_RABBITMQ_PORT": "$RABBITMQ_PORT",
                    "SPRING_RABBITMQ_USERNAME": "$RABBITMQ_USER",
                    "SPRING_RABBITMQ_PASSWORD": "$RABBITMQ_PASSWORD",
                },
            ),
        ),
    ),
    "Kafka": Other(
        re.compile(
            r"kafkajs|kafka-python|aiokafka|confluent-kafka|sarama|kafka-go|franz-go|spring-kafka"
            r"|rdkafka"
        ),
        re.compile(r"\S{0,40}kafka|redpanda"),
        re.compile(r"\w{0,40}KAFKA\w{0,40}"),
    ),
    "Elasticsearch": Other(
        re.compile(r"go-elasticsearch|@elastic/elasticsearch|olivere/elastic"),
        re.compile(r"elasticsearch|opensearch"),
        re.compile(r"\w{0,40}ELASTIC\w{0,40}"),
    ),
    "NATS": Other(
        re.compile(r"nats\.go|['\"]nats['\"]|nats-py|async-nats"),
        re.compile(r"nats"),
        re.compile(r"\w{0,40}NATS\w{0,40}"),
        Started("nats", ("bus",), url="NATS_URL", schemes="nats", port=4222, has_users=False),
    ),
    "SQL Server": Other(
        re.compile(r"['\"]mssql['\"]|tedious|pyodbc|SqlServer|go-mssqldb"),
        re.compile(r"server|azure-sql-edge"),
        re.compile(r"\w{0,40}(?:MSSQL|SQLSERVER)\w{0,40}"),
        is_database=True,
    ),
    "PlanetScale": Other(
        re.compile(r"@planetscale/database|drizzle-orm/planetscale"),
        variables=URLS,
        is_by_https=True,
    ),
    "Neon": Other(
        re.compile(r"@neondatabase/serverless|@vercel/postgres"),
        variables=URLS,
        is_by_https=True,
    ),
    "DynamoDB": Other(
        image=re.compile(r"dynamodb-local"),
        variables=re.compile(r"\w{0,40}DYNAMO\w{0,40}(?:URL|URI|HOST|ENDPOINT)"),
    ),
    "Keycloak": Other(
        image=re.compile(r"keycloak"),
        variables=re.compile(r"\w{0,40}KEYCLOAK\w{0,40}(?:URL|URI|HOST)"),
    ),
    "MinIO": Other(
        re.compile(r"\bminio-go\b|[\"']minio[\"']|(?m:^minio\b)"),
        image=re.compile(r"minio"),
        variables=re.compile(r"\w{0,40}(?:MINIO|S3)\w{0,40}(?:URL|URI|HOST|ENDPOINT)"),
    ),
    "Memcached": Other(
        image=re.compile(r"memcached"),
        variables=re.compile(r"\w{0,40}MEMCACHED?\w{0,40}"),
        started=Started(
            service="memcached",
            roles=("cache", "memory"),
            url="MEMCACHE_SERVERS",
            schemes="memcached",
            port=11211,
            has_users=False,
        ),
    ),
}
"""By what people call them."""
WHOLE = ("URL", "URI", "HOST", "CONNECTION")
"""Ends of the names that say where it is."""
PARTS = {
    "VHOST": re.compile(r"VHOST$"),
    "URL": re.compile(
        r"(?:UR[LI]|DSN|CONN(?:ECTION|ECT)?(?:_?STR(?:ING)?)?|(?:NATS|MEMCACHED?)_SERVERS?)$"
        r"|^(?:MONGO(?:DB)?|NATS|AMQP|RABBIT(?:MQ)?|MEMCACHED?)$"
    ),
    "HOST": re.compile(r"(?:HOST(?:NAME)?|SERVER)$"),
    "PORT": re.compile(r"PORT$"),
    "USER": re.compile(r"(?:USER(?:NAME)?|LOGIN)$"),
    "PASSWORD": re.compile(r"(?:PASS(?:WORD)?|PWD)$"),
    "NAME": re.compile(r"(?:_DB|DB_?NAME|MONGO(?:DB)?_NAME|DATABASE(?:_NAME)?)$"),
}
"""What a variable of an application's own holds, by the end of its name."""
OF_ANY = re.compile(r"(?:\w{1,40}_)?(?:DB|DATABASE)_[A-Z]+")
OF_NONE = re.compile(
    r"(?:^|_)TEST(?:_|$)|_(?:MANAGEMENT|ADMIN|API|MONITOR(?:ING)?|HTTP|SSL|TLS)(?:_|$)"
)
"""In names of variables that are for other ports, or other runs."""
OF_IMAGE = "_INITDB_"
"""In those of MongoDB's image, which stand in examples whether or not a source reads them."""
WITH_SCHEME = re.compile(r"[\"']?[a-z][a-z0-9+]*:")
"""An address; one of another service, where it isn't known as this one's."""
PLAIN_IMAGE = re.compile(r"[\w./:@-]+")
"""Without variables in it."""
TRANSACTIONS = re.compile(r"\b(?:start|with)(?:_t|T)ransaction\(")
"""In sources; what Prisma writes has them in any case."""
NO_REPLICAS = (
    "MongoDB has transactions in a replica set alone, which this one isn't: what uses them fails"
)
IN_CONTAINER = "{service} is a container, {image}, new at each start"
NOT_PROVIDED = (
    "it needs {service}, which webdyno doesn't start: have one run on this machine, which both "
    "variants then share{how}"
)
BY_A_KEY = ": its variables are to say where, and with which key"
NOT_HERE = (
    "it needs {service}, of which neither the program, {program}, nor Docker is here: install one "
    "of them, or have a {service} run on this machine, which both variants then share{how}"
)
ELSEWHERE = (
    "its driver asks {service} over HTTPS, which no database here speaks: have it take another "
    "driver by a variable"
)
NO_VARIABLE = (
    "it needs {service}, and {where}: have it read ${url}, with "
    'services.{role} = "{name}" below [app]'
)
NO_USERS = (
    "it logs in to {service} by {names}, and the one that webdyno starts has no users: have it "
    "connect by a whole address, ${url}"
)


def with_other_services(app: FoundApp, folder: Path, seeds: str | None) -> FoundApp:
    """Put services behind an application that needs them, or name those that aren't started.

    `seeds` is what fills its database.
    """
    if not app.start or "http.server" in app.start:  # pages alone ask nobody
        return app
    listed, text = packages_of(folder), _text_of(folder)
    packages = (listed or text) + build_files_of_jvm(app.start, folder)
    shown = f"{read_text(folder / ENV_FILE) or ''}\n{example_of(folder)}"
    addresses = "\n".join(match["value"] for match in PLAIN_VALUE.finditer(shown))
    for server, client in SERVERS.items():
        if re.search(client, f"{listed}\n{addresses}"):
            doubt = NOT_PROVIDED.format(service=server, how=BY_A_KEY)
            app = app.hindered(Hindrance.BEHIND, doubt)
    images, names = images_behind(folder), variables_read(folder)
    has_database = "db" in app.services or any(
        DRIVERS[name].search(packages) and is_named.search(text)
        for name, is_named in NAMED_IN_SOURCES.items()
    )
    for title, other in OTHERS.items():
        is_one_of_two = has_database and other.is_database
        is_behind = any(map(other.image.fullmatch, images))
        if not is_behind and (is_one_of_two or not other.packages.search(packages)):
            continue
        if other.started and (name := _name_of(other.started, images)):
            needed = _Needed(title, other.variables, other.started, name, packages, text)
            app = _with_service(app, needed, folder, seeds if other.is_database else None)
        else:
            app = app.hindered(Hindrance.BEHIND, *_not_provided(title, other, names))
    return app


def _name_of(started: Started, images: Mapping[str, str]) -> str | None:
    """Return what stands for a service below [app]; None where it can't be started here."""
    if not started.program or shutil.which(started.program):
        return started.service
    if not choice.engine_answers():
        return None
    image = images.get(started.image.partition(":")[0], "")
    return f"image:{image if PLAIN_IMAGE.fullmatch(image) else started.image}"


def _not_provided(title: str, other: Other, names: set[str]) -> Iterator[str]:
    """Yield a sentence, and the variable that says where it is."""
    fitting = filter(other.variables.fullmatch, names)
    likely = sorted(fitting, key=lambda name: (not name.endswith(WHOLE), name))
    how = f": environment.{likely[0]} below [app] says where" if likely else ""
    says = NOT_HERE if other.started else ELSEWHERE if other.is_by_https else NOT_PROVIDED
    program = other.started.program if other.started else ""
    yield says.format(service=title, how=how, program=program)
    yield from likely[:1]


class _Needed(NamedTuple):
    """A service that is started."""

    title: str
    variables: re.Pattern[str]
    how: Started
    name: str
    """As it stands below [app]."""
    packages: str
    text: str
    """Of all sources."""


def _with_service(app: FoundApp, needed: _Needed, folder: Path, seeds: str | None) -> FoundApp:
    """Put a service behind an application, and pass it where that is by the names it reads."""
    how = needed.how
    role = next((role for role in how.roles if role not in app.services), how.service)
    by_prisma = of_prisma(folder)
    names = _variables(needed, folder, is_sole=role == how.roles[0])
    parts = set(names.values())
    spring, variables_of_spring = how.of_spring
    is_of_spring = re.search(spring, needed.packages) is not None
    is_fixed = "PORT" not in parts and re.search(rf":{how.port}\b", needed.text)
    if not (is_of_spring or "URL" in parts or ("HOST" in parts and not is_fixed)):
        where = _fixed_address(how, folder) or "no variable for its address was found"
        doubt = NO_VARIABLE.format(
            service=needed.title, where=where, url=how.url, role=role, name=needed.name
        )
        return app.hindered(Hindrance.BEHIND, doubt)
    if not how.has_users and parts & {"USER", "PASSWORD"}:
        users = [name for name in sorted(names) if names[name] in {"USER", "PASSWORD"}]
        doubt = NO_USERS.format(service=needed.title, names=", ".join(users), url=how.url)
        if "URL" not in parts:
            return app.hindered(Hindrance.BEHIND, doubt)
        app = replace(app, doubts=(*app.doubts, doubt))
        names = {name: part for name, part in names.items() if name not in users}
    prefix = role.upper()
    values = {part: f"${prefix}_{part}" for part in PARTS} | {"URL": f"${how.url}", "VHOST": "/"}
    if "PORT" not in parts:
        values["HOST"] += f":${prefix}_PORT"
    exported = dict(variables_of_spring if is_of_spring else {})
    exported |= {name: values[part] for name, part in sorted(names.items())}
    app = _filled(replace(app, services={**app.services, role: needed.name}), needed, seeds)
    if how.program and ("mongodb" in by_prisma.values() or TRANSACTIONS.search(needed.text)):
        app = replace(app, doubts=(*app.doubts, NO_REPLICAS))
    given = {name: value for name, value in exported.items() if value != f"${name}"}
    return with_exports(app, given)


def _variables(needed: _Needed, folder: Path, *, is_sole: bool) -> dict[str, str]:
    """Return the variables that say where a service is, each with what it holds.

    `is_sole`: whether there is no other database that `DB_HOST` and its like may mean.
    """
    text, example = needed.text, example_of(folder)
    read = variables_read(folder) | of_prisma(folder).keys()
    addresses = re.compile(rf"{NAMED_ADDRESS}{needed.how.schemes}://")
    names = {match["name"].upper(): "URL" for match in addresses.finditer(f"{example}\n{text}")}
    values = {match["name"]: match["value"] for match in PLAIN_VALUE.finditer(example)}
    for name in filter(needed.variables.fullmatch, read - {NAMES_DRIVER}):
        part = next((part for part, end in PARTS.items() if end.search(name)), None)
        is_its_own = not OF_ANY.fullmatch(name) or (
            is_sole and not WITH_SCHEME.match(values.get(name, ""))
        )
        if part and is_its_own and (OF_IMAGE not in name or name in text):
            names.setdefault(name, part)
    return {name: part for name, part in names.items() if name in read and not OF_NONE.search(name)}


def _text_of(folder: Path) -> str:
    return "\n".join(read_text(path) or "" for path in sources(folder))


def _fixed_address(how: Started, folder: Path) -> str | None:
    """Return where sources have an address written into them."""
    place = first_place(folder, re.compile(rf"\b{how.schemes}://|:{how.port}\b"))
    return f"its address stands in {place}" if place else None


def _filled(app: FoundApp, needed: _Needed, seeds: str | None) -> FoundApp:
    """Have seeds fill a database once, a container at each start; unless another one had them."""
    image = needed.name.partition("image:")[2]
    if image:
        note = IN_CONTAINER.format(service=needed.title, image=image)
        app = replace(app, notes=(*app.notes, note))
    if not seeds or app.setup or seeds in (app.build or ""):
        return app
    if image:
        return replace(app, prepare=" && ".join(filter(None, (app.prepare, seeds))))
    return replace(app, setup=seeds)
