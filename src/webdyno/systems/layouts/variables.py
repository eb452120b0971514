"""What a program gets by variables: its port, secrets of its own, and services of the catalog."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from webdyno.systems.layouts.app import FOR_MEASURING, FoundApp, first_of, sources
from webdyno.systems.layouts.settings import settings_of
from webdyno.systems.tables import read_text

CONFIGURES = {".properties", ".yml", ".yaml", ".conf", ".toml", ".exs", ".json"}
CONFIGURATION = re.compile(r"application|appsettings|Rocket|runtime|config\b")
"""Endings of files in which frameworks have their port, and the beginnings of their names."""
USES_PORT = re.compile(r"(?<![\w-])PORT\b")
VARIABLE = re.compile(
    r"""(?:process\.env\.|import\.meta\.env\.|(?:env|environ|ENV|Getenv|getenv|LookupEnv|var)"""
    r"""(?:\.get|\.fetch|\.int|\.str|_var)?\s*[(\[]\s*["'`])(?P<name>[A-Z][A-Z0-9_]*)\b"""
)
"""A variable of the environment that a source reads, in any of the languages."""
OF_PORT = re.compile(r"(?:[A-Z0-9]+_)*PORT")
OF_ADDRESS = re.compile(r"(?:[A-Z0-9]+_)*(?:LISTEN|BIND|ADDR|ADDRESS|LISTEN_ADDR|BIND_ADDRESS)")
OF_OTHERS = re.compile(
    r"^(?:DB|DATABASE|PG|POSTGRES|POSTGRESQL|MYSQL|MARIADB|MONGO|MONGODB|REDIS|SMTP|MAIL|EMAIL"
    r"|RABBITMQ|AMQP|KAFKA|ELASTIC|ELASTICSEARCH|MEMCACHED?|STATSD|METRICS|ADMIN|DEBUG|GRPC|SSH"
    r"|FTP|LDAP|NATS|SQL|PROXY|VITE|CLIENT|FRONTEND|DEV|TEST|REMOTE|MINIO|S3|JAEGER|OTEL)_"
    r"|^PGPORT$"
)
"""Of variables that say where something else listens."""
PORT_FLAG = re.compile(
    r"(?P<flag>(?:^|\s)(?:PORT=|(?:-p|--port|--http-port|--server\.port|-Dserver\.port)[ =]"
    r"|(?:-b|-l|-a|--bind|--listen|--addr|--address)[ =](?:tcp://)?[\w.\[\]]*:))\d{2,5}\b"
)
"""What stands before a port on the command lines of servers."""
BINDS = re.compile(
    r"""(?:bind|listen|serve|run|start)\w*\(.*?["'](?P<address>[\w.\[\]]*:\d{2,5})["']"""
    r"""|(?:\.listen\(\s*(?:\{\s*port:\s*)?|^\s*port:\s*|\b(?:serve\(|default\s)\s*\{[^}\n]*\bport:\s*)"""
    r"""(?P<port>\d{2,5})\b""",
    re.IGNORECASE,
)
BOTH_UP = "both variants are up at the same time, and need a port each"


def given_port(line: str) -> str:
    """Return a command line with $PORT in the place of a fixed port, by the usual flags."""
    return PORT_FLAG.sub(r"\g<flag>$PORT", line)


def with_port(app: FoundApp, folder: Path) -> FoundApp:
    """Pass a program its port by the variable that its sources read, where that isn't PORT."""
    if not app.start or app.heeds_port or "$PORT" in app.start:
        return app
    configured = [path for path in sources(folder, CONFIGURES) if CONFIGURATION.match(path.name)]
    if any(USES_PORT.search(read_text(path) or "") for path in (*sources(folder), *configured)):
        return app
    if "PORT" in settings_of(folder):
        return app
    if (name := _port_variable(folder)) is None:
        doubt = "nothing here mentions PORT, the variable with the port that it has to listen on"
        if fixed := fixed_address(folder):
            doubt += f"; it binds {fixed}: {BOTH_UP}"
        return replace(app, doubts=(*app.doubts, doubt))
    value = "$PORT" if OF_PORT.fullmatch(name) else "127.0.0.1:$PORT"
    note = f"its sources read the port from {name}"
    return replace(app, start=f"{name}={value} {app.start}", notes=(*app.notes, note))


def _variables_read(folder: Path) -> set[str]:
    texts = (read_text(path) or "" for path in sources(folder))
    named = {match["name"] for text in texts for match in VARIABLE.finditer(text)}
    return named | settings_of(folder)


def _port_variable(folder: Path) -> str | None:
    own = sorted(name for name in _variables_read(folder) if not OF_OTHERS.search(name))
    for kind in (OF_PORT, OF_ADDRESS):
        if len(fitting := [name for name in own if kind.fullmatch(name)]) == 1:
            return fitting[0]
    return None


def fixed_address(folder: Path) -> str | None:
    """Return the first address that sources bind to, and where: `0.0.0.0:3000 in src/x.rs:8`."""
    for path in sources(folder):
        for number, line in enumerate((read_text(path) or "").splitlines(), 1):
            if match := BINDS.search(line):
                bound = match["address"] or f"port {match['port']}"
                return f"{bound} in {path.relative_to(folder)}:{number}"
    return None


SIGNS = re.compile(
    r"(?:(?:APP|FLASK|DJANGO)_)?SECRET(?:_KEY)?(?:_BASE)?|(?:ACCESS|REFRESH)_TOKEN_SECRET"
    r"|(?:SESSION|COOKIE|JWT|TOKEN|AUTH|CSRF|SIGNING|HMAC)_(?:SECRET|KEY|SECRET_KEY)"
)
"""Names of such variables; those of keys for what is elsewhere have others."""


def with_values_for_secrets(app: FoundApp, folder: Path) -> FoundApp:
    """Pass a program the secrets that its sources read."""
    if not app.start:
        return app
    lacking = _variables_read(folder) - app.environment.keys()
    given = sorted(name for name in lacking if SIGNS.fullmatch(name))
    if not given:
        return app
    note = f"its sources read {', '.join(given)}: a value for measuring is given"
    return replace(
        app,
        environment={**app.environment, **dict.fromkeys(given, FOR_MEASURING)},
        notes=(*app.notes, note),
    )


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
URLS = {
    "postgresql": re.compile(
        r"(?:(?!TEST)[A-Z0-9]+_)*(?:DATABASE|DB|POSTGRES(?:QL)?|PG)_(?:URL|URI|DSN)"
    ),
    "mariadb": re.compile(r"(?:(?!TEST)[A-Z0-9]+_)*(?:DATABASE|DB|MYSQL|MARIADB)_(?:URL|URI|DSN)"),
    "redis": re.compile(r"(?:(?!TEST)[A-Z0-9]+_)*REDIS_(?:URL|URI|DSN)"),
}
"""By service: an application's own variables for its whole address."""
USUAL_URLS = {"postgresql": "DATABASE_URL", "mariadb": "DATABASE_URL", "redis": "REDIS_URL"}
READ = {
    "postgresql": re.compile(rf"\b(?:PGHOST|{OF_ANY})"),
    "mariadb": re.compile(rf"\b(?:MYSQL_HOST|{OF_ANY})"),
    "redis": re.compile(r"\bREDIS_URL\b"),
}
"""By service: how an application finds it."""
CONFIGURATIONS = ("config/runtime.exs", "prisma/schema.prisma", "config/cable.yml")
SQLITE = re.compile(r"sqlite", re.IGNORECASE)
"""Of an application that has its database in a file, unless it is said of another one."""
BY_URL = re.compile(r"\bDATABASE_URL\b|env\.db\(|dj_database_url\.config\(")
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
    r"(?P<part>HOST(?:NAME)?|SERVER|PORT|USER(?:NAME)?|PASS(?:WORD)?|DB|NAME|DATABASE)\b"
)
"""Variables of an application's own for the parts of a database's address."""
PARTS = {
    **dict.fromkeys(("HOST", "HOSTNAME", "SERVER"), "$DB_HOST"),
    "PORT": "$DB_PORT",
    **dict.fromkeys(("USER", "USERNAME"), "$DB_USER"),
    **dict.fromkeys(("PASS", "PASSWORD"), "$DB_PASSWORD"),
    **dict.fromkeys(("DB", "NAME", "DATABASE"), "$DB_NAME"),
}
OF_MARIADB = {f"$MYSQL_{part}" for part in ("HOST", "PORT", "USER", "PASSWORD", "DATABASE")}
ROLES = {"postgresql": "db", "mariadb": "db", "redis": "cache"}
ELSEWHERE = (
    "it needs {service}, and no variable for its address was found: "
    'services.db = "{service}" below [app] starts one, and NAME=$DATABASE_URL before start passes '
    "its address by the name that the application reads"
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
    if not app.start:
        return replace(app, services={}, setup=None)
    if app.services:  # by the layout's own way
        return app
    files = [*sources(folder), *(folder / name for name in CONFIGURATIONS)]
    texts = [read_text(path) or "" for path in files]
    names = _variables_read(folder)
    texts.append("\n".join(sorted(names)))
    if of_rails := read_text(folder / "config/database.yml"):  # Rails reads DATABASE_URL by itself
        texts += [of_rails.partition("\nproduction:")[2], "DATABASE_URL"]
    text = "\n".join(texts)
    packages = "".join(read_text(folder / name) or "" for name in MANIFESTS) or text
    needed = [service for service in DRIVERS if _needs(service, packages, text)] if text else []
    urls = {name: sorted(filter(URLS[name].fullmatch, names)) for name in needed}
    databases = {
        ROLES[name]: name for name in reversed(needed) if urls[name] or READ[name].search(text)
    }
    if SQLITE.search(text):
        if "db" not in databases or not (urls[databases["db"]] or BY_URL.search(text)):
            notes = (IN_A_FILE.format(service=databases["db"]),) if "db" in databases else ()
            return replace(app, setup=None, notes=(*app.notes, *notes))
        app = replace(app, notes=(*app.notes, NOT_IN_A_FILE.format(service=databases["db"])))
    own = _own_variables(text)
    relational = [name for name in needed if ROLES[name] == "db"]
    if "db" not in databases and own and relational:
        databases["db"] = relational[0]
    if "db" not in databases:
        doubts = [ELSEWHERE.format(service=name) for name in relational[:1]]
        return replace(app, services=databases, setup=None, doubts=(*app.doubts, *doubts))
    setup = " && ".join(filter(None, (app.prepare, app.setup))) or _by_sql(folder, databases["db"])
    services = dict(sorted(databases.items(), reverse=True))
    app = replace(app, services=services, setup=setup, prepare=None)
    exported = own | _url_with_driver(services["db"], packages)
    for service in services.values():
        usual = USUAL_URLS[service]
        value = exported.get(usual, f"${usual}")
        exported |= dict.fromkeys((name for name in urls[service] if name != usual), value)
    return _with_exports(app, exported)


def _needs(service: str, packages: str, sources_text: str) -> bool:
    connects = CONNECTS.get(service)
    by_source = connects is not None and connects.search(sources_text) is not None
    return by_source or DRIVERS[service].search(packages) is not None


def _own_variables(text: str) -> dict[str, str]:
    """Return an application's own variables for a database, each with the value it gets.

    Without one for the host there are none: the others may be of something else.
    """
    variables = {match[0]: PARTS[match["part"]] for match in NAMED.finditer(text)}
    if PARTS["HOST"] not in variables.values():
        return {}
    known = {*PARTS.values(), *OF_MARIADB}
    return {name: value for name, value in sorted(variables.items()) if f"${name}" not in known}


def _with_exports(app: FoundApp, variables: Mapping[str, str]) -> FoundApp:
    if not variables or not app.start:
        return app
    pairs = " ".join(f"{name}={value}" for name, value in variables.items())
    exported = f"export {pairs} && "
    is_plain = not re.search(r"[&|;]", app.start)
    start = f"{pairs} {app.start}" if is_plain else exported + app.start
    return replace(app, start=start, setup=app.setup and exported + app.setup)


def _url_with_driver(service: str, packages: str) -> dict[str, str]:
    """Return the URL with the driver that SQLAlchemy is to take, where it can be one only."""
    dialects = DIALECTS.get(service, {}) if WITH_DIALECT.search(packages) else {}
    fitting = [
        dialect
        for driver, dialect in dialects.items()
        if re.search(driver, packages, re.IGNORECASE)
    ]
    return {"DATABASE_URL": f"{fitting[0]}:${{DATABASE_URL#*:}}"} if len(fitting) == 1 else {}


def _by_sql(folder: Path, service: str) -> str | None:
    """Return what runs the first file that makes tables, and the first that fills them."""
    if service not in SQL_CLIENTS:
        return None
    names = [
        first_of(folder, *(f"{where}{name}" for name in names for where in SQL_FOLDERS))
        for names in (SQL_TABLES, SQL_ROWS)
    ]
    commands = [SQL_CLIENTS[service].format(file=name) for name in names if name]
    return " && ".join(commands) if names[0] else None
