"""Databases that an application needs, where a service of the catalog can stand behind it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.own.layouts.found import FoundApp, read_text, sources

MANIFESTS = (
    *("requirements.txt", "requirements/base.txt", "requirements/production.txt", "pyproject.toml"),
    *("Pipfile", "package.json", "prisma/schema.prisma", "go.mod", "Cargo.toml", "Gemfile"),
    *("mix.exs", "deno.json"),
)
DRIVERS = {
    "postgresql": re.compile(
        r"psycopg|asyncpg|['\"](?:pg|postgres)['\"]|lib/pq|jackc/pgx|tokio-postgres|:postgrex"
        r"|sqlx[^\n]*postgres|diesel[^\n]*postgres|\"postgresql\""
    ),
    "mariadb": re.compile(
        r"mysqlclient|pymysql|aiomysql|['\"](?:mysql2?|trilogy)['\"]|go-sql-driver"
    ),
    "redis": re.compile(r"(?<![\w-])(?:io)?redis(?![\w-])|go-redis"),
}
"""By service: what a list of packages names for it."""
READ = {
    "postgresql": re.compile(r"\b(?:DATABASE_URL|PGHOST)\b|\benv\.db\(|dj_database_url\.config\("),
    "mariadb": re.compile(r"\b(?:DATABASE_URL|MYSQL_HOST)\b|\benv\.db\(|dj_database_url\.config\("),
    "redis": re.compile(r"\bREDIS_URL\b"),
}
"""By service: how an application finds it."""
CONFIGURATIONS = (*("config/runtime.exs", "prisma/schema.prisma", "config/cable.yml"),)
SQLITE = re.compile(r"sqlite", re.IGNORECASE)
"""Of an application that has its database in a file, unless it is told of another one."""
ROLES = {"postgresql": "db", "mariadb": "db", "redis": "cache"}
ELSEWHERE = (
    "it needs {service}, and reads no DATABASE_URL: give its address by environment.NAME below "
    "[app] (docs/how-to/databases.md)"
)


def with_services(app: FoundApp, folder: Path) -> FoundApp:
    """Put services behind an application that needs them; a migration fills them once."""
    needed = list(_needed(folder)) if app.start else []
    text = "\n".join(_texts(folder)) if needed else ""
    if not needed or SQLITE.search(text):
        return app
    found = {ROLES[it]: it for it in reversed(needed) if READ[it].search(text)}
    lacking = [it for it in needed if it != "redis" and it not in found.values()]
    if lacking and "db" not in found:
        app = replace(app, doubts=(*app.doubts, ELSEWHERE.format(service=lacking[0])))
    if not found:
        return app
    keeps = "db" in found
    return replace(
        app,
        services=dict(sorted(found.items(), reverse=True)),
        setup=app.prepare if keeps else None,
        prepare=None if keeps else app.prepare,
    )


def _needed(folder: Path) -> Iterator[str]:
    listed = "\n".join(read_text(folder / it) or "" for it in MANIFESTS)
    yield from (service for service, driver in DRIVERS.items() if driver.search(listed))


def _texts(folder: Path) -> Iterator[str]:
    for path in (*sources(folder), *(folder / it for it in CONFIGURATIONS)):
        yield read_text(path) or ""
    if of_rails := read_text(folder / "config/database.yml"):
        yield of_rails.partition("\nproduction:")[2]
        yield "DATABASE_URL"  # which Rails reads by itself
