"""Services behind an application that the catalog lacks."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, Hindrance, sources
from webdyno.systems.layouts.compose import images_behind
from webdyno.systems.layouts.packages import DRIVERS, build_files_of_jvm, packages_of
from webdyno.systems.layouts.variables import variables_read

OTHERS = {
    "MongoDB": re.compile(
        r"mongoose|['\"]mongodb['\"]|pymongo|\bmotor\b|beanie|mongoid|mongo-driver|data-mongodb"
        r"|mongoengine"
    ),
    "RabbitMQ": re.compile(
        r"amqplib|amqp091|amqp-connection|go-rabbitmq|streadway/amqp|aio[-_]pika|\bpika\b|\bbunny\b"
        r"|lapin|starter-amqp"
    ),
    "Kafka": re.compile(
        r"kafkajs|kafka-python|aiokafka|confluent-kafka|sarama|kafka-go|franz-go|spring-kafka|rdkafka"
    ),
    "Elasticsearch": re.compile(r"go-elasticsearch|@elastic/elasticsearch|olivere/elastic"),
    "NATS": re.compile(r"nats\.go|['\"]nats['\"]|nats-py|async-nats"),
    "SQL Server": re.compile(r"['\"]mssql['\"]|tedious|pyodbc|SqlServer|go-mssqldb"),
    "PlanetScale": re.compile(r"@planetscale/database|drizzle-orm/planetscale"),
    "Neon": re.compile(r"@neondatabase/serverless|@vercel/postgres"),
    **dict.fromkeys(("DynamoDB", "Keycloak", "MinIO", "Memcached"), re.compile(r"(?!)")),
}
"""What no service of the catalog is, by what a list of packages names for it."""
IMAGES = {
    "MongoDB": re.compile(r"mongo(?:db\S*)?"),
    "RabbitMQ": re.compile(r"rabbitmq"),
    "Kafka": re.compile(r"\S*kafka|redpanda"),
    "Elasticsearch": re.compile(r"elasticsearch|opensearch"),
    "NATS": re.compile(r"nats"),
    "SQL Server": re.compile(r"server|azure-sql-edge"),
    "DynamoDB": re.compile(r"dynamodb-local"),
    "Keycloak": re.compile(r"keycloak"),
    "MinIO": re.compile(r"minio"),
    "Memcached": re.compile(r"memcached"),
    **dict.fromkeys(("PlanetScale", "Neon"), re.compile(r"(?!)")),
}
"""By service: its image, where a Compose file has it behind the application."""
DATABASES = {"MongoDB", "SQL Server"}
BY_HTTPS = {"PlanetScale", "Neon"}
"""Databases that their drivers ask over HTTPS, which no server here speaks."""
WHOLE = ("URL", "URI", "HOST", "CONNECTION")
"""Ends of the names that say where it is."""
OF_OTHERS = {
    "MongoDB": re.compile(
        r"(?:\w+_)?MONGO(?!_EXPRESS|_INITDB)\w*|(?:\w+_)?(?:DB|DATABASE)_(?:HOST|CONNECTION|UR[IL])"
    ),
    "RabbitMQ": re.compile(r"\w{0,40}(?:RMQ|AMQP|RABBIT)\w{0,40}(?:URL|URI|HOST|SERVER)"),
    "Kafka": re.compile(r"\w{0,40}KAFKA\w{0,40}"),
    "Elasticsearch": re.compile(r"\w{0,40}ELASTIC\w{0,40}"),
    "NATS": re.compile(r"\w{0,40}NATS\w{0,40}(?:URL|HOST|SERVER)"),
    "SQL Server": re.compile(r"\w{0,40}(?:MSSQL|SQLSERVER)\w{0,40}"),
    "DynamoDB": re.compile(r"\w{0,40}DYNAMO\w{0,40}(?:URL|URI|HOST|ENDPOINT)"),
    "Keycloak": re.compile(r"\w{0,40}KEYCLOAK\w{0,40}(?:URL|URI|HOST)"),
    "MinIO": re.compile(r"\w{0,40}(?:MINIO|S3)\w{0,40}(?:URL|URI|HOST|ENDPOINT)"),
    "Memcached": re.compile(r"\w{0,40}MEMCACHED?\w{0,40}(?:URL|HOST|SERVERS?)"),
    **dict.fromkeys(("PlanetScale", "Neon"), re.compile(r"\w{0,40}(?:DATABASE|DB|POSTGRES)_URL")),
}
NOT_PROVIDED = (
    "it needs {service}, which webdyno doesn't start: have one run on this machine, which both "
    "variants then share{how}"
)
ELSEWHERE = (
    "its driver asks {service} over HTTPS, which no database here speaks: have it take another "
    "driver by a variable"
)


def with_other_services(app: FoundApp, folder: Path) -> FoundApp:
    """Name the services that an application needs and webdyno doesn't start."""
    if not app.start:
        return app
    packages = packages_of(folder) or "\n".join(read_text(path) or "" for path in sources(folder))
    packages += build_files_of_jvm(app.start, folder)
    images = images_behind(folder)
    for doubt, *variables in _not_provided(packages, images, variables_read(folder)):
        app = app.hindered(Hindrance.BEHIND, doubt, *variables)
    return app


def _not_provided(packages: str, images: set[str], names: set[str]) -> Iterator[tuple[str, ...]]:
    """Yield a sentence for each, and the variable that says where it is."""
    has_database = any(DRIVERS[name].search(packages) for name in ("postgresql", "mariadb"))
    for service, pattern in OTHERS.items():
        is_one_of_two = has_database and service in DATABASES
        is_behind = any(map(IMAGES[service].fullmatch, images))
        if is_behind or (pattern.search(packages) and not is_one_of_two):
            fitting = filter(OF_OTHERS[service].fullmatch, names)
            likely = sorted(fitting, key=lambda name: (not name.endswith(WHOLE), name))
            how = f": environment.{likely[0]} below [app] says where" if likely else ""
            says = ELSEWHERE if service in BY_HTTPS else NOT_PROVIDED
            yield says.format(service=service, how=how), *likely[:1]
