"""Services that `webdyno init` starts behind applications, but for SQL databases and Redis."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from systems.layouts.laid_out import Files, laid_out
from webdyno.config import Catalogue
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.other_services import OTHERS


class Case(NamedTuple):
    """An application, and what is found of it."""

    files: Files
    start: str
    services: dict[str, str]
    says: str = ""
    """In its notes and doubts."""
    others: dict[str, Any] = {}
    """Further fields."""


def program(source: str, **needs: str) -> dict[str, Any]:
    scripts = {"start": "node s.js", "seed": "node seed.js"}
    return {
        "package.json": {"scripts": scripts, "dependencies": needs},
        "s.js": f"app.listen(process.env.PORT)\n{source}\n",
    }


START = "NODE_ENV=production node s.js"
SEED = "npm run seed --silent"
NOT_HERE = "it needs MongoDB, of which neither the program, mongod, nor Docker is here"
BY_PARTS = "`mongodb://${process.env.MONGO_HOST}:${process.env.MONGO_PORT}/x`"
BY_USER = "`mongodb://${process.env.DB_USERNAME}:${process.env.DB_PASSWORD}@${process.env.DB_HOST}`"
SPRING = """<project><artifactId>shop</artifactId><version>1</version>
<artifactId>spring-boot-maven-plugin</artifactId><groupId>org.springframework.boot</groupId>
<artifactId>spring-boot-starter-web</artifactId><artifactId>spring-boot-starter-amqp</artifactId>
</project>"""
CASES = {
    "MongoDB by a name of its own, with seeds": Case(
        program("mongoose.connect(process.env.MONGO_URL)", mongoose="8"),
        f"MONGO_URL=$MONGODB_URI {START}",
        {"db": "mongodb"},
        others={"setup": f"export MONGO_URL=$MONGODB_URI && {SEED}", "prepare": None},
    ),
    "MongoDB by a name that only its value shows": Case(
        program("connect(process.env.STORE || 'mongodb://localhost/x')", mongodb="6"),
        f"STORE=$MONGODB_URI {START}",
        {"db": "mongodb"},
    ),
    "MongoDB by the usual name": Case(
        program("connect(process.env.MONGODB_URI)", mongodb="6"), START, {"db": "mongodb"}
    ),
    "MongoDB by its parts": Case(
        program(f"connect({BY_PARTS})", mongoose="8"),
        f"MONGO_HOST=$DB_HOST MONGO_PORT=$DB_PORT {START}",
        {"db": "mongodb"},
    ),
    "MongoDB by a host alone": Case(
        program("connect(process.env.DB_HOST)", mongoose="8")
        | {".env.example": "DB_HOST=localhost\nMONGO_EXPRESS_EMAIL=a@example.org\n"},
        f"DB_HOST=$DB_HOST:$DB_PORT {START}",
        {"db": "mongodb"},
    ),
    "MongoDB with a user": Case(
        program(f"connect({BY_USER})", mongoose="8"),
        START,
        {},
        "it logs in to MongoDB by DB_PASSWORD, DB_USERNAME, and the one that webdyno starts has no",
    ),
    "MongoDB with the user of its image": Case(
        program(
            "connect(process.env.MONGO_HOST, process.env.MONGO_INITDB_ROOT_USERNAME)", mongodb="6"
        ),
        START,
        {},
        "it logs in to MongoDB by MONGO_INITDB_ROOT_USERNAME",
    ),
    "MongoDB next to a database in a file, which has DATABASE_URL": Case(
        program("connect(process.env.API_MONGO_URL); open(process.env.DATABASE_URL)", mongodb="6")
        | {".env.example": "DATABASE_URL=file:./dev.db\nMONGO_INITDB_ROOT_USERNAME=root\n"},
        f"API_MONGO_URL=$MONGODB_URI {START}",
        {"db": "mongodb"},
    ),
    "MongoDB next to a driver that nothing uses": Case(
        program("mongoose.connect(process.env.MONGO_URL)", mongoose="8", mysql="2"),
        f"MONGO_URL=$MONGODB_URI {START}",
        {"db": "mongodb"},
    ),
    "PostgreSQL by the variables of its driver": Case(
        program("const pool = new Pool()", pg="8"), START, {"db": "postgresql"}
    ),
    "Redis by a queue's package": Case(
        program("queue(process.env.REDIS_HOST, process.env.REDIS_PORT)", bull="4"),
        f"REDIS_HOST=$CACHE_HOST REDIS_PORT=$CACHE_PORT {START}",
        {"cache": "redis"},
    ),
    "MongoDB at a fixed address": Case(
        program("connect('mongodb://localhost:27017/x')", mongoose="8"),
        START,
        {},
        "it needs MongoDB, and its address stands in s.js:2: have it read $MONGODB_URI, with "
        'services.db = "mongodb" below [app]',
    ),
    "MongoDB at a fixed port": Case(
        program("connect(`mongodb://${process.env.MONGO_HOST}:27017`)", mongoose="8"),
        START,
        {},
        "its address stands in s.js:2",
    ),
    "MongoDB by Prisma": Case(
        program("", prisma="5")
        | {"prisma/schema.prisma": ' provider = "mongodb"\n url = env("DATABASE_URL")\n'},
        f"DATABASE_URL=$MONGODB_URI {START}",
        {"db": "mongodb"},
        "MongoDB has transactions in a replica set alone",
    ),
    "RabbitMQ": Case(
        program("amqp.connect(process.env.AMQP_URL + process.env.AMQP_QUEUE_NAME)", amqplib="1"),
        f"AMQP_URL=$RABBITMQ_URL {START}",
        {"messages": "rabbitmq"},
    ),
    "RabbitMQ of Spring": Case(
        {"pom.xml": SPRING, "src/main/java/A.java": "@SpringBootApplication"},
        "SPRING_RABBITMQ_HOST=$RABBITMQ_HOST SPRING_RABBITMQ_PORT=$RABBITMQ_PORT "
        "SPRING_RABBITMQ_USERNAME=$RABBITMQ_USER SPRING_RABBITMQ_PASSWORD=$RABBITMQ_PASSWORD ",
        {"messages": "rabbitmq"},
    ),
    "NATS next to PostgreSQL, which has the seeds": Case(
        program(
            "nats(process.env.NATS_SERVERS); new Pool(process.env.DATABASE_URL)", nats="2", pg="8"
        ),
        f"NATS_SERVERS=$NATS_URL {START}",
        {"db": "postgresql", "bus": "nats"},
        others={"setup": f"export NATS_SERVERS=$NATS_URL && {SEED}"},
    ),
    "Memcached of a Compose file": Case(
        program("cache(process.env.MEMCACHED_HOST + ':' + process.env.MEMCACHED_PORT)")
        | {"compose.yaml": "services: {web: {build: ., depends_on: [m]}, m: {image: memcached}}"},
        f"MEMCACHED_HOST=$CACHE_HOST MEMCACHED_PORT=$CACHE_PORT {START}",
        {"cache": "memcached"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_service_stands_behind_what_asks_it(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    app = find_app(laid_out(tmp_path, case.files))
    assert app
    assert (app.start or "").startswith(case.start)
    assert app.services == case.services
    assert {key: getattr(app, key) for key in case.others} == case.others
    assert case.says in " ".join([*app.notes, *app.doubts])
    assert bool(app.hindrances) is not bool(case.services)


@pytest.fixture
def no_mongod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: name if name != "mongod" else None)


MONGOOSE = program("mongoose.connect(process.env.MONGO_URL)", mongoose="8")


@pytest.mark.usefixtures("no_mongod")
def test_mongodb_is_a_container_where_only_an_engine_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that a Compose file names; its data is made at each start."""
    monkeypatch.setattr("webdyno.systems.containers.choice.engine_answers", lambda: True)
    behind = "services: {web: {build: ., depends_on: [m]}, m: {image: 'mongo:%s'}}"
    app = find_app(laid_out(tmp_path, {**MONGOOSE, "compose.yaml": behind % "6.0"}))
    assert app
    assert app.services == {"db": "image:mongo:6.0"}
    assert (app.setup, app.prepare) == (None, f"export MONGO_URL=$MONGODB_URI && {SEED}")
    assert "MongoDB is a container, mongo:6.0, new at each start" in app.notes
    app = find_app(laid_out(tmp_path, {"compose.yaml": behind % "${VERSION}"}))
    assert app
    assert app.services == {"db": "image:mongo:7"}


@pytest.mark.usefixtures("no_mongod")
def test_mongodb_is_named_where_nothing_runs_it(tmp_path: Path) -> None:
    app = find_app(laid_out(tmp_path, MONGOOSE))
    assert app
    assert app.services == {}
    (doubt,) = app.doubts
    assert doubt.startswith(NOT_HERE)
    assert doubt.endswith(": environment.MONGO_URL below [app] says where")
    assert app.wanted == {doubt: ("MONGO_URL",)}


def test_what_is_started_is_of_the_catalog() -> None:
    services = Catalogue.load().services
    for started in filter(None, (other.started for other in OTHERS.values())):
        service = services[started.service]
        assert started.url in service.variables
        assert service.image
        assert service.image.port == started.port
        assert {"USER", "PASSWORD"}.issubset(service.credentials) is started.has_users
