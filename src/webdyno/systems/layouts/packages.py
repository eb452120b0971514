"""Lists of packages that applications need, and the drivers of databases among them."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.tables import long_form, read_text, read_toml, table
from webdyno.systems.layouts.app import matching
from webdyno.systems.layouts.node_package import members_of, package_in
from webdyno.systems.layouts.python_tools import list_of_image

PRISMA = "prisma/schema.prisma"
MANIFESTS = (
    *("requirements.txt", "requirements/base.txt", "requirements/production.txt", "pyproject.toml"),
    *("package.json", PRISMA, "go.mod", "Cargo.toml", "Gemfile"),
    *("mix.exs", "deno.json", "CMakeLists.txt"),
)
OF_JVM = ("pom.xml", "build.gradle", "build.gradle.kts")
"""Whose drivers may be for tests, and whose databases its layout finds."""
INDIRECT = re.compile(r"^.*// indirect$", re.MULTILINE)
"""In go.mod: what others need."""
DRIVERS = {
    "postgresql": re.compile(
        r"psycopg|asyncpg|['\"](?:pg|postgres)['\"]|lib/pq|jackc/pgx|tokio-postgres|:postgrex"
        r"|sqlx[^\n]{0,500}postgres|sqlx[^\]]{0,500}\"postgres\"|diesel[^\n]{0,500}postgres"
        r"|\"postgresql\""
        r"|gorm\.io/driver/postgres|uptrace/bun/driver/pgdriver|\blibpqxx\b|\bPostgreSQL::PostgreSQL\b"
        r"|\borg\.postgresql\b|vertx-pg-client"
        r"|\bpg8000\b|['\"]pg-promise['\"]|go-pg/pg\b|deadpool-postgres|sqlx-postgres"
    ),
    "mariadb": re.compile(
        r"(?i:mysqlclient|pymysql|aiomysql)|['\"](?:mysql2?|trilogy)['\"]|go-sql-driver"
        r"|gorm\.io/driver/mysql|\bmysqlcppconn|\blibm(?:ysqlclient|ariadb)\b"
        r"|\bmysql-connector-(?:j|python\b)|\bmariadb-java-client\b|(?i:\bflask[-_]mysqldb?\b)"
        r"|['\"]mariadb['\"]|\bmysql_async\b|sqlx-mysql|:myxql\b|sqlx[^\n]{0,500}\"mysql\""
        r"|diesel[^\n]{0,500}\"mysql\""
    ),
    "redis": re.compile(
        r"(?<![\w-])(?:io|hi)?redis(?![\w-])|go-redis|redigo|\b(?:jedis|lettuce-core|kreds)\b"
        r"|[\"'](?:bull(?:mq)?|cache-manager-redis-\w+)[\"']"
    ),
}
"""By service: what a list of packages names for it."""
SERVERS = {
    "Microsoft SQL Server": r"\b(?:sqlsrv|sqlserver|mssql)://",
    "SurrealDB": r"\bsurrealdb\b",
    "Cassandra": r"\bcassandra-driver\b|\bgocql\b|\bscylla\b",
    "Neo4j": r"\bneo4j\b",
    "ClickHouse": r"\bclickhouse\b",
    "InfluxDB": r"\binfluxdb",
    "Oracle Database": r"\b(?:cx_Oracle|oracledb|godror|sijms/go-ora|oci8)\b",
    "CouchDB": r"\b(?:couchdb|nano-couchdb)\b",
    "ArangoDB": r"\barango(?:js|db)\b",
    "Meilisearch": r"\bmeilisearch\b",
    "Qdrant": r"\bqdrant\b",
    "Weaviate": r"\bweaviate\b",
    "PocketBase": r"[\"']pocketbase[\"']",
    "Supabase": r"@supabase/(?:supabase-js|ssr)|\bsupabase(?:-py)?[=~<> ]",
    "Clerk": r"@clerk/",
    "Convex": r"[\"']convex[\"']",
    "Appwrite": r"[\"'](?:node-)?appwrite[\"']",
    "Sanity": r"@sanity/client|[\"']next-sanity[\"']",
    "Contentful": r"[\"']contentful[\"']",
    "Firebase": r"\bfirebase[-_]admin\b|[\"']firebase[\"']|firebase\.google\.com/go",
}
"""By what people call them: what lists of packages, or addresses, name for servers that nobody
starts here."""
OF_MODULE = re.compile(r"(?<!\S)(\S+?)/(?:target|build)/")
"""In how a program of the JVM's starts."""


CATALOG = "gradle/libs.versions.toml"
CATALOGED = {"libraries": "libs.", "plugins": "libs.plugins."}
"""By table of the catalog of versions: what stands before a name in files of Gradle's."""


def of_catalog(folder: Path, text: str) -> Iterator[str]:
    """Return what a file of Gradle's names by the catalog of versions, such as `libs.javalin`."""
    catalog = read_toml(folder / CATALOG) or {}
    for kind, before in CATALOGED.items():
        for name, entry in table(catalog, kind).items():
            alias = re.escape(before + re.sub("[-_]", ".", name))
            if re.search(rf"\b{alias}(?![\w.])", text):
                yield from (f'"{value}"' for value in long_form(entry, "module").values())


def build_files_of_jvm(start: str, folder: Path) -> str:
    """Return what says what a program of the JVM's needs, its module's file with it."""
    module = OF_MODULE.search(start)
    places = [folder, *([folder / module[1]] if module else [])]
    return "".join(read_text(place / name) or "" for place in places for name in OF_JVM)


OF_TESTS_OF_JVM = re.compile(
    r"^[^\n]*\btest[A-Z]\w*[ (][^\n]*$"
    r"|<dependency>(?:(?!</dependency>).){0,600}<scope>test</scope>",
    re.MULTILINE | re.DOTALL,
)


def drivers_of_jvm(start: str, folder: Path) -> str:
    """Return what a program of the JVM's needs as it runs, by Gradle's catalog of versions too."""
    text = OF_TESTS_OF_JVM.sub("", build_files_of_jvm(start, folder))
    return "\n".join([text, *of_catalog(folder, text)])


def packages_of(folder: Path) -> str:
    """Return the lists of what is needed, without what others need in their turn."""
    names = [*MANIFESTS, *filter(None, [list_of_image(folder)])]
    cargo = table(read_toml(folder / "Cargo.toml") or {}, "workspace").get("members")
    names += [f"{path.relative_to(folder)}/Cargo.toml" for path in matching(folder, cargo)]
    of_pipenv = "\n".join(table(read_toml(folder / "Pipfile") or {}, "packages"))
    package = package_in(folder)
    for member in members_of(folder, package) if package else ():
        inside = member.folder.relative_to(folder)
        names += [f"{inside}/package.json", f"{inside}/schema.prisma", f"{inside}/{PRISMA}"]
    return of_pipenv + "".join(INDIRECT.sub("", read_text(folder / name) or "") for name in names)
