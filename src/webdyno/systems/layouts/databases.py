"""Databases that an application needs, where a service of the catalog can stand behind it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.files import first_of, read_text, sources

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
CONNECTS = {
    "postgresql": re.compile(r"\bpgsql:|\bpg_p?connect\("),
    "mariadb": re.compile(r"\bmysql:|\bmysqli\b"),
}
"""By service: what sources say that need no package for it, as those of PHP."""
OF_ANY = r"DATABASE_URL\b|DB_HOST\b|env\.db\(|dj_database_url\.config\("
READ = {
    "postgresql": re.compile(rf"\b(?:PGHOST|{OF_ANY})"),
    "mariadb": re.compile(rf"\b(?:MYSQL_HOST|{OF_ANY})"),
    "redis": re.compile(r"\bREDIS_URL\b"),
}
"""By service: how an application finds it."""
CONFIGURATIONS = (*("config/runtime.exs", "prisma/schema.prisma", "config/cable.yml"),)
SQLITE = re.compile(r"sqlite", re.IGNORECASE)
"""Of an application that has its database in a file, unless it is said of another one."""
BY_URL = re.compile(r"\bDATABASE_URL\b|env\.db\(|dj_database_url\.config\(")
"""By which it is reported."""
DIALECTS = {
    "postgresql": {
        "asyncpg": "postgresql+asyncpg",
        "psycopg2": "postgresql+psycopg2",
        r"psycopg(?!2)": "postgresql+psycopg",
    },
    "mariadb": {
        "aiomysql": "mysql+aiomysql",
        "mysqlclient": "mysql+mysqldb",
        "pymysql": "mysql+pymysql",
    },
}
"""By service and driver: what SQLAlchemy wants in the URL. It takes psycopg2 without up to 2.0, and
psycopg from 2.1 on."""
WITH_DIALECT = re.compile(r"sqlalchemy|sqlmodel", re.IGNORECASE)
NAMED = re.compile(
    r"\b(?:POSTGRES(?:QL)?|PG|SQL|DATABASE|MYSQL|MARIADB|RDS|DB)_"
    r"(?P<part>HOST(?:NAME)?|PORT|USER(?:NAME)?|PASS(?:WORD)?|DB|NAME|DATABASE)\b"
)
"""Variables of an application's own for the parts of a database's address."""
PARTS = {
    **dict.fromkeys(("HOST", "HOSTNAME"), "$DB_HOST"),
    "PORT": "$DB_PORT",
    **dict.fromkeys(("USER", "USERNAME"), "$DB_USER"),
    **dict.fromkeys(("PASS", "PASSWORD"), "$DB_PASSWORD"),
    **dict.fromkeys(("DB", "NAME", "DATABASE"), "$DB_NAME"),
}
OF_MARIADB = {f"$MYSQL_{part}" for part in ("HOST", "PORT", "USER", "PASSWORD", "DATABASE")}
"""Those that are reported anyway."""
ROLES = {"postgresql": "db", "mariadb": "db", "redis": "cache"}
ELSEWHERE = (
    "it needs {service}, and reads no DATABASE_URL: give its address by environment.NAME below "
    "[app] (docs/how-to/databases.md)"
)
IN_A_FILE = (
    'its database is a file unless DATABASE_URL is set: services.db = "{service}" below [app] puts '
    "a server behind it"
)
NOT_IN_A_FILE = "DATABASE_URL is set, so its database is {service} and no file"
SQL_FOLDERS = ("", "db/", "database/", "sql/", "migrations/", "data/")
SQL_TABLES = ("schema.sql", "init.sql", "database.sql", "dump.sql", "tables.sql", "create.sql")
SQL_ROWS = ("seed.sql", "seeds.sql", "data.sql", "fixtures.sql", "sample.sql")
SQL_CLIENTS = {
    "postgresql": "psql -qX -v ON_ERROR_STOP=1 -f {file} >/dev/null",
    "mariadb": "mariadb --user=$MYSQL_USER $MYSQL_DATABASE <{file}",
}
"""By service; they find the server by its variables."""


def with_services(app: FoundApp, folder: Path) -> FoundApp:
    """Put services behind an application that needs them; migrations and seeds fill them once."""
    text = "\n".join(_texts(folder)) if app.start else ""
    needed = list(_needed(folder, text)) if text else []
    databases = {
        ROLES[database]: database for database in reversed(needed) if READ[database].search(text)
    }
    if SQLITE.search(text):
        if "db" not in databases or not BY_URL.search(text):
            notes = (IN_A_FILE.format(service=databases["db"]),) if "db" in databases else ()
            return replace(app, setup=None, notes=(*app.notes, *notes))
        app = replace(app, notes=(*app.notes, NOT_IN_A_FILE.format(service=databases["db"])))
    named = _named(text)
    if "db" not in databases and named:
        databases |= {
            ROLES[database]: database for database in reversed(needed) if ROLES[database] == "db"
        }
    lacking = [
        database
        for database in needed
        if database != "redis" and database not in databases.values()
    ]
    if lacking and "db" not in databases:
        app = replace(app, doubts=(*app.doubts, ELSEWHERE.format(service=lacking[0])))
    if "db" not in databases:
        return replace(app, services=databases, setup=None)
    setup = " && ".join(filter(None, (app.prepare, app.setup))) or _by_sql(folder, databases["db"])
    services = dict(sorted(databases.items(), reverse=True))
    app = replace(app, services=services, setup=setup, prepare=None)
    return _named_by({**named, **_dialect(services["db"], _listed(folder) or text)}, app)


def _named(text: str) -> dict[str, str]:
    """Give an application's own variables for a database, each with the one that reports it.

    None without one for the host: the others may be of something else.
    """
    variables = {match[0]: PARTS[match["part"]] for match in NAMED.finditer(text)}
    if PARTS["HOST"] not in variables.values():
        return {}
    known = {*PARTS.values(), *OF_MARIADB}
    return {name: value for name, value in sorted(variables.items()) if f"${name}" not in known}


def _named_by(named: Mapping[str, str], app: FoundApp) -> FoundApp:
    """Have a program, and what fills its database, find that by its own variables."""
    if not named or not app.start:
        return app
    pairs = " ".join(f"{name}={value}" for name, value in named.items())
    exported = f"export {pairs} && "
    is_plain = not re.search(r"[&|;]", app.start)
    start = f"{pairs} {app.start}" if is_plain else exported + app.start
    return replace(app, start=start, setup=app.setup and exported + app.setup)


def _needed(folder: Path, text: str) -> Iterator[str]:
    """Name services by the lists of packages; without such a list its sources name them."""
    listed = _listed(folder) or text
    for service, driver in DRIVERS.items():
        connects = CONNECTS.get(service)
        if driver.search(listed) or (connects and connects.search(text)):
            yield service


def _listed(folder: Path) -> str:
    return "".join(read_text(folder / name) or "" for name in MANIFESTS)


def _dialect(service: str, listed: str) -> dict[str, str]:
    """Give the URL with the driver that SQLAlchemy is to take, where it can be one only."""
    if not WITH_DIALECT.search(listed):
        return {}
    fitting = [
        dialect
        for driver, dialect in DIALECTS.get(service, {}).items()
        if re.search(driver, listed, re.IGNORECASE)
    ]
    return {"DATABASE_URL": f"{fitting[0]}:${{DATABASE_URL#*:}}"} if len(fitting) == 1 else {}


def _texts(folder: Path) -> Iterator[str]:
    for path in (*sources(folder), *(folder / name for name in CONFIGURATIONS)):
        yield read_text(path) or ""
    if of_rails := read_text(folder / "config/database.yml"):
        yield of_rails.partition("\nproduction:")[2]
        yield "DATABASE_URL"  # which Rails reads by itself


def _by_sql(folder: Path, service: str) -> str | None:
    """Give what runs the first file that makes tables, and the first that fills them."""
    if service not in SQL_CLIENTS:
        return None
    names = [
        first_of(folder, *(f"{where}{name}" for name in names for where in SQL_FOLDERS))
        for names in (SQL_TABLES, SQL_ROWS)
    ]
    commands = [SQL_CLIENTS[service].format(file=name) for name in names if name]
    return " && ".join(commands) if names[0] else None
