"""The databases behind an application, and how it finds them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.env_files import ENV_FILE
from webdyno.systems.layouts.app import SOURCES, FoundApp, line_of, sources
from webdyno.systems.layouts.fills import filled_apart, filled_by_files
from webdyno.systems.layouts.packages import (
    DRIVERS,
    PRISMA,
    drivers_of_jvm,
    packages_of,
)
from webdyno.systems.layouts.settings import example_of
from webdyno.systems.layouts.variables import variables_read

UNBUILT = re.compile(r"^//go:build (?!.*(?:linux|unix|!))", re.MULTILINE)
"""In a source of Go's that is compiled on request alone."""
GO_OPENS = r"\b(?:sql|sqlx|gorm|dbx)\.(?:Must)?(?:Open|Connect)(?:Context)?\((?:ctx, )?\s*"
CONNECTS = {
    "postgresql": re.compile(rf'\bpgsql:(?!//)|\bpg_p?connect\(|{GO_OPENS}(?:"postgres|"pgx)'),
    "mariadb": re.compile(rf'\bmysql:(?!//)|\bmysqli\b|{GO_OPENS}"mysql"'),
}
"""By service: what sources say that need no package for it, as those of PHP."""
OF_ANY = r"DATABASE_URL\b|DB_HOST\b|env\.db\(|dj_database_url\.config\("
URLS = {
    "postgresql": re.compile(
        r"(?:(?!TEST)[A-Z0-9]+_)*(?:DATABASE|DB|JDBC|POSTGRES(?:QL)?|PG)_{1,2}(?:CONN(?:ECTION)?_)?"
        r"(?:URL|URI|DSN|CONNECTION|STRING)"
        r"|(?:APP_)?DSN"
    ),
    "mariadb": re.compile(
        r"(?:(?!TEST)[A-Z0-9]+_)*(?:DATABASE|DB|JDBC|MYSQL|MARIADB)_{1,2}(?:CONN(?:ECTION)?_)?"
        r"(?:URL|URI|DSN|CONNECTION|STRING)"
        r"|(?:APP_)?DSN"
    ),
    "redis": re.compile(r"(?:(?!TEST)[A-Z0-9]+_)*REDIS_{1,2}(?:URL|URI|DSN)"),
}
"""By service: an application's own variables for its whole address."""
WITHOUT_TLS = "?sslmode=disable"
NAMED_ADDRESS = (
    r"""\b(?P<name>[A-Za-z]\w*)["']?\s{0,9}(?::\s{0,9}\w+\s{0,9})?(?:=|,|\|\||\?\?|:)?\s{0,9}"""
    r"""["'`]?"""
)
"""A variable, before the scheme of an address that it has as an example, or unless it is set."""
ADDRESS = re.compile(
    NAMED_ADDRESS + r"""(?P<scheme>(?P<kind>postgres(?:ql)?|mysql|mariadb|redis)(?:\+\w+)?)://"""
    rf"""[^\s"'`?]{{0,300}}(?P<without_tls>{re.escape(WITHOUT_TLS)})?"""
)
KINDS = {"postgres": "postgresql", "mysql": "mariadb"}
NAMES_DRIVER = "DB_CONNECTION"
"""Of Laravel, Adonis and others, where its example is no address."""
DRIVER_SAID = re.compile(
    r"(?:driver|dialect|connection|client|engine)[ \t]*=[ \t]*[\"']?"
    r"(?P<kind>postgres(?:ql)?|mysql|mariadb)\b",
    re.IGNORECASE,
)
"""In a file of variables, where there are drivers of several."""
FILE_SAID = re.compile(r"^[ \t]*DB_CONNECTION[ \t]*=[ \t]*[\"']?sqlite\b", re.MULTILINE)
USUAL_URLS = {"postgresql": "DATABASE_URL", "mariadb": "DATABASE_URL", "redis": "REDIS_URL"}
OF_GO = re.compile(r"go-sql-driver|gorm\.io/driver/mysql")
OF_GO_MYSQL = '"$DB_USER:$DB_PASSWORD@tcp($DB_HOST:$DB_PORT)/$DB_NAME?parseTime=true"'
"""No URL: what Go's driver of MySQL wants."""
OF_HEROKU_JAVA = "JDBC_DATABASE_URL"
OF_JDBC = '"jdbc:{kind}://$DB_HOST:$DB_PORT/$DB_NAME?user=$DB_USER&password=$DB_PASSWORD"'
TAKES_URL_APART = re.compile(r"\bURI\(|\bURI\.create\(")
"""In sources of the JVM's: an address that is no JDBC's, as hosters give it."""
OF_JVM_IN_A_FILE = re.compile(r"h2database|hsqldb|\bderby\b")
READ = {
    "postgresql": re.compile(rf"\b(?:PGHOST|new (?:pg\.)?(?:Pool|Client)\(\)|{OF_ANY})"),
    "mariadb": re.compile(rf"\b(?:MYSQL_HOST|{OF_ANY})"),
    "redis": re.compile(r"\bREDIS_URL\b"),
}
"""By service: how an application finds it."""
OF_PRISMA = re.compile(
    r"""^[ \t]*(?:url|directUrl)[ \t]*=[ \t]*env\(["']([A-Z]\w*)["']""", re.MULTILINE
)
PROVIDER = re.compile(r'''^[ \t]*provider[ \t]*=[ \t]*"(postgresql|mysql|mongodb)"''', re.MULTILINE)
CONFIGURATIONS = ("config/runtime.exs", PRISMA, "config/cable.yml")
SQLITE = re.compile(r"sqlite", re.IGNORECASE)
"""Of an application that has its database in a file, unless it is said of another one."""
GO_SQLITE = re.compile(
    r"go-sqlite3|modernc\.org/sqlite|glebarez/|driver/sqlite|[\"`]sqlite3?[\"`]|\bsqlite3?://"
)
"""In sources of Go's that have a database in a file; its mappers name it anyway."""
IN_MEMORY = re.compile(r"[\"'](?::memory:|sqlite(?:\+\w{1,20})?://(?:/:memory:)?)[\"']")
IN_TRIPLE_QUOTES = re.compile(r"('''|\"\"\").*?\1", re.DOTALL)
OF_DJANGO = re.compile(
    r"""^[^#\n]*["']ENGINE["']:\s*["']django\.db\.backends\.(?:postgresql|mysql)""", re.MULTILINE
)
"""In its settings: a server of its own, by variables, next to a file for development."""
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
    r"\b(?:(?!TEST)[A-Z0-9]+_{1,2}){0,4}?"
    r"(?:POSTGRES(?:QL)?|PG|SQL|DATABASE|MYSQL|MARIADB|RDS|TYPEORM|DB)_{1,2}(?:DATABASE_|DB_)?"
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
DRIVER_NAMED = re.compile(
    r"\b(?P<key>type|dialect|client)['\"]?\s*:\s*process\.env\.(?P<name>(?:DB|DATABASE|SQL|TYPEORM)_\w+)"
)
"""A variable that says which database it is, as TypeORM, Sequelize and Knex read it."""
DRIVER_NAMES = {
    "type": {"postgresql": "postgres", "mariadb": "mysql"},
    "dialect": {"postgresql": "postgres", "mariadb": "mysql"},
    "client": {"postgresql": "pg", "mariadb": "mysql2"},
}
READS_MYSQL = re.compile(r"\bMYSQL_HOST\b")
OF_MARIADB = {f"$MYSQL_{part}" for part in ("HOST", "PORT", "USER", "PASSWORD", "DATABASE")}
ROLES = {"postgresql": "db", "mariadb": "db", "redis": "cache"}
ELSEWHERE = (
    "it needs {service}, and no variable for its address was found: "
    'services.db = "{service}" below [app] starts one, and NAME=$DATABASE_URL before start passes '
    "its address by the name that the application reads"
)
FIXED = (
    "it needs {service}, and its address stands in {place}: have it read $DB_HOST, $DB_PORT, "
    '$DB_USER, $DB_PASSWORD and $DB_NAME there, with services.db = "{service}" below [app]'
)
HERE = r"(?:localhost|127\.0\.0\.1|db|postgres|mysql)\b"
"""Hosts of databases, as sources and Compose files call them."""
HOST = re.compile(
    r"""^[ \t]*["']?(?:db_?)?(?:host|server)["']?\s*[:=]\s*["']?"""
    rf"""{HERE}|(?:\bhost(?:addr)?=|@tcp\(|://[^\s"'/@]{{1,80}}@){HERE}"""
    rf"""|\bmysqli(?:_connect)?\(\s{{0,9}}["']{HERE}|\$\w{{0,30}}(?:host|server)\w{{0,9}}\s{{0,9}}=\s{{0,9}}["']{HERE}"""
    rf"""|\bdefine\(\s{{0,9}}["']\w{{0,30}}HOST["']\s{{0,9}},\s{{0,9}}["']{HERE}""",
    re.IGNORECASE | re.MULTILINE,
)
OF_TOOLS = re.compile(r"compose|^servers\.json$")
"""Files of Compose and pgAdmin."""
CONFIGURED = {".json", ".ini", ".yml", ".yaml", ".toml"}
MAY_HAVE_DATABASE = re.compile(
    r"sql|database|\bdb\b|postgres|orm|\bpg\b|knex|environ|\benv\b", re.IGNORECASE
)
"""In sources: without it a driver in a list of packages is unused."""
NAMED_IN_SOURCES = {
    "postgresql": re.compile(r"postgres|\bpg\b|psycopg|asyncpg", re.IGNORECASE),
    "mariadb": re.compile(r"mysql|mariadb", re.IGNORECASE),
}
OF_DOCUMENTS = re.compile(r"\bmongo(?:ose|db|engine)\b|\bpymongo\b", re.IGNORECASE)
OF_REDIS = re.compile(
    r"\b(?!TEST|\w{0,40}COMMANDER)(?:[A-Z0-9]+_){0,4}?REDIS_(?:[A-Z0-9]+_){0,2}?"
    r"(?P<part>HOST(?:NAME)?|ADDR(?:ESS)?|PORT|PASS(?:WORD)?|USER(?:NAME)?)\b"
)
"""Variables of an application's own for the parts of where its Redis is."""
PARTS_OF_REDIS = {
    **dict.fromkeys(("HOST", "HOSTNAME"), "$CACHE_HOST"),
    **dict.fromkeys(("ADDR", "ADDRESS"), "$CACHE_HOST:$CACHE_PORT"),
    "PORT": "$CACHE_PORT",
    **dict.fromkeys(("PASS", "PASSWORD"), "$CACHE_PASSWORD"),
    **dict.fromkeys(("USER", "USERNAME"), "default"),
}
IN_A_FILE = (
    'its database is a file unless DATABASE_URL is set: services.db = "{service}" below [app] puts '
    "a server behind it"
)
NOT_IN_A_FILE = "{name} is set, so its database is {service} and no file"


def with_services(app: FoundApp, folder: Path) -> FoundApp:
    """Put services behind an application that needs them; migrations and seeds fill them once."""
    if not app.start:
        return replace(app, services={}, setup=None)
    if FILE_SAID.search(read_text(folder / ENV_FILE) or example_of(folder)):
        return _filled_by_build(app)
    files = [*sources(folder), *(folder / name for name in CONFIGURATIONS)]
    texts = [text for text in map(read_text, files) if text and not UNBUILT.search(text)]
    schemes = of_prisma(folder)
    names = variables_read(folder) | schemes.keys()
    if app.services:  # by the layout's own way
        return app if app.setup else filled_apart(app, folder)
    of_jvm = drivers_of_jvm(app.start, folder)
    packages = packages_of(folder) + of_jvm or "\n".join(texts)
    addresses = [*ADDRESS.finditer("\n".join([example_of(folder), *texts]))]
    without_tls = {match["name"].upper() for match in addresses if match["without_tls"]}
    schemes |= dict(_schemes(addresses, names))
    texts.append("\n".join(sorted(names)))
    if of_rails := read_text(folder / "config/database.yml"):  # Rails reads DATABASE_URL by itself
        texts += [of_rails.partition("\nproduction:")[2], "DATABASE_URL"]
    text = "\n".join(texts)
    needed = _needed(packages, text, names, schemes)
    if said := DRIVER_SAID.search(read_text(folder / ENV_FILE) or example_of(folder)):
        needed.sort(key=lambda name: name != KINDS.get(said["kind"], said["kind"]))
    urls = {service: sorted(_urls_of(service, names, schemes)) for service in needed}
    databases = {
        ROLES[name]: name for name in reversed(needed) if urls[name] or READ[name].search(text)
    }
    of_cache = _redis_by_parts(text) if "redis" in needed and not urls["redis"] else {}
    if of_cache:
        databases["cache"] = "redis"
    relational = [name for name in needed if ROLES[name] == "db"]
    is_by_parts = relational and OF_DJANGO.search(IN_TRIPLE_QUOTES.sub("", text))
    host = _variable_of_host(text) if is_by_parts else None
    if host:
        databases.setdefault("db", relational[0])
    own = _own_variables(text)
    if _may_be_a_file(folder, text, own):
        if "db" not in databases or not (host or urls[databases["db"]] or BY_URL.search(text)):
            notes = (IN_A_FILE.format(service=databases["db"]),) if "db" in databases else ()
            return _filled_by_build(replace(app, notes=(*app.notes, *notes)))
        note = NOT_IN_A_FILE.format(name=host or "DATABASE_URL", service=databases["db"])
        app = replace(app, notes=(*app.notes, note))
    if "db" not in databases and own and relational:
        databases["db"] = relational[0]
    if "db" not in databases:
        if OF_JVM_IN_A_FILE.search(of_jvm):
            relational = []
        doubts = [each for name in relational[:1] for each in _not_found(name, folder, text)]
        app = replace(app, services=databases, setup=None, doubts=(*app.doubts, *doubts))
        return with_exports(app, of_cache)
    steps = " && ".join(filter(None, (app.prepare, app.setup)))
    setup = steps or filled_by_files(folder, databases["db"], text)
    services = dict(sorted(databases.items(), reverse=True))
    app = replace(app, services=services, setup=setup, prepare=None)
    drivers = {
        match["name"]: DRIVER_NAMES[match["key"]][services["db"]]
        for match in DRIVER_NAMED.finditer(text)
    }
    exported = own | drivers | of_cache | _url_with_driver(services["db"], packages)
    for service in services.values():
        usual = USUAL_URLS[service]
        value = exported.get(usual, f"${usual}")
        if service == "mariadb" and OF_GO.search(packages):
            value = OF_GO_MYSQL
        if of_jvm.strip() and not TAKES_URL_APART.search(text) and service != "redis":
            value = _of_jdbc(service, of_jvm)
        for name in urls[service]:
            address = _address(name, schemes.get(name, ""), service, of_jvm) or value
            address += WITHOUT_TLS if name in without_tls else ""
            exported |= {name: address} if address != f"${name}" else {}
    return with_exports(app, exported)


def _may_be_a_file(folder: Path, text: str, own: Mapping[str, str]) -> bool:
    """Whether sources name SQLite, other than as what a mapper knows, or for tests."""
    if not SQLITE.search(text):
        return False
    is_known_alone = (folder / "go.mod").is_file() and not GO_SQLITE.search(text)
    has_server = READS_MYSQL.search(text) or PARTS["HOST"] in own.values()
    return not is_known_alone and not (IN_MEMORY.search(text) and has_server)


def _filled_by_build(app: FoundApp) -> FoundApp:
    """Have a database that is a file filled once: seeds may not run before each start."""
    if app.setup is None:
        return app
    build = " && ".join(filter(None, (app.build, app.prepare, app.setup)))
    note = "its database is a file: build fills it"
    return replace(app, build=build, setup=None, notes=(*app.notes, note))


def _redis_by_parts(text: str) -> dict[str, str]:
    """Return the variables by which sources find Redis, each with the value it gets."""
    variables = {match[0]: PARTS_OF_REDIS[match["part"]] for match in OF_REDIS.finditer(text)}
    host, port, both = (PARTS_OF_REDIS[part] for part in ("HOST", "PORT", "ADDR"))
    if not {host, both} & {*variables.values()}:
        return {}
    whole = host if port in variables.values() else both
    return {name: whole if value == host else value for name, value in sorted(variables.items())}


def _not_found(service: str, folder: Path, text: str) -> Iterator[str]:
    """Return what to do about a database whose address no variable holds."""
    for path in sources(folder, SOURCES | CONFIGURED):
        file = read_text(path) or ""
        if (host := HOST.search(file)) and not OF_TOOLS.search(path.name):
            place = line_of(folder, path, file, host.start())
            yield FIXED.format(service=service, place=place)
            return
    is_unused = OF_DOCUMENTS.search(text) and not NAMED_IN_SOURCES[service].search(text)
    if MAY_HAVE_DATABASE.search(text) and not is_unused:
        yield ELSEWHERE.format(service=service)


def of_prisma(folder: Path) -> dict[str, str]:
    """Return the variables for a database that Prisma's schema reads, each with a scheme."""
    schema = read_text(folder / PRISMA) or ""
    provider = PROVIDER.search(schema)
    return dict.fromkeys(OF_PRISMA.findall(schema), provider[1]) if provider else {}


def _schemes(addresses: Sequence[re.Match[str]], names: set[str]) -> Iterator[tuple[str, str]]:
    """Return variables with the scheme of an address that they have as an example."""
    for match in addresses:
        if (name := match["name"].upper()) in names:
            yield name, match["scheme"]


def _service_of(scheme: str) -> str:
    kind = scheme.partition("+")[0]
    return KINDS.get(kind, kind)


def _needed(packages: str, text: str, names: set[str], schemes: Mapping[str, str]) -> list[str]:
    """Return the services that are needed; those first that examples name, or sources connect."""
    connected = {name for name, pattern in CONNECTS.items() if pattern.search(text)}
    if not text.strip():
        return []
    named = ROLES.keys() & map(_service_of, schemes.values())
    needed = [
        name for name, driver in DRIVERS.items() if name in connected or driver.search(packages)
    ]
    if not needed and not SQLITE.search(text):
        needed = sorted(named)
    if OF_HEROKU_JAVA in names:
        needed.append("postgresql")
    if "redis" not in needed and any(map(URLS["redis"].fullmatch, names)):
        needed.append("redis")
    return sorted(needed, key=lambda name: (name not in named, name not in connected))


def _urls_of(service: str, names: set[str], schemes: Mapping[str, str]) -> Iterator[str]:
    for name in names:
        if "TEST" in name or "ALLOW" in name or (name == NAMES_DRIVER and name not in schemes):
            continue
        if name in schemes:
            if _service_of(schemes[name]) == service:
                yield name
        elif URLS[service].fullmatch(name):
            yield name


def _of_jdbc(service: str, packages: str) -> str:
    return OF_JDBC.format(kind="mysql" if "mysql-connector" in packages else service)


def _address(name: str, scheme: str, service: str, of_jvm: str) -> str | None:
    """Return what a variable for a whole address gets that isn't the usual one."""
    if name == OF_HEROKU_JAVA:
        return _of_jdbc(service, of_jvm)
    return f"{scheme}:${{{USUAL_URLS[service]}#*:}}" if "+" in scheme else None


def _variable_of_host(text: str) -> str | None:
    named = (match[0] for match in NAMED.finditer(text) if PARTS[match["part"]] == PARTS["HOST"])
    return next(named, None)


def _own_variables(text: str) -> dict[str, str]:
    """Return an application's own variables for a database, each with the value it gets.

    Without one for the host there are none: the others may be of something else.
    """
    variables = {match[0]: PARTS[match["part"]] for match in NAMED.finditer(text)}
    if PARTS["HOST"] not in variables.values():
        return {}
    known = {*PARTS.values(), *OF_MARIADB}
    return {name: value for name, value in sorted(variables.items()) if f"${name}" not in known}


def with_exports(app: FoundApp, variables: Mapping[str, str]) -> FoundApp:
    """Pass a program variables, and the commands that fill what is behind it."""
    if not variables or not app.start:
        return app
    pairs = " ".join(f"{name}={value}" for name, value in variables.items())
    exported = f"export {pairs} && "
    is_plain = not re.search(r"[&|;]", app.start)
    start = f"{pairs} {app.start}" if is_plain else exported + app.start
    setup, prepare = (step and exported + step for step in (app.setup, app.prepare))
    return replace(app, start=start, setup=setup, prepare=prepare)


def _url_with_driver(service: str, packages: str) -> dict[str, str]:
    """Return the URL with the driver that SQLAlchemy is to take, where it can be one only."""
    dialects = DIALECTS.get(service, {}) if WITH_DIALECT.search(packages) else {}
    fitting = [
        dialect
        for driver, dialect in dialects.items()
        if re.search(driver, packages, re.IGNORECASE)
    ]
    return {"DATABASE_URL": f"{fitting[0]}:${{DATABASE_URL#*:}}"} if len(fitting) == 1 else {}
