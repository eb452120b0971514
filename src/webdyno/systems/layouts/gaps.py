"""What an application needs by its files, and nothing that was found for it provides.

Each is named with what to do: what a layout doesn't know would show as a failure, or not at all.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.env_files import EXAMPLE
from webdyno.systems.layouts.app import SOURCES, FoundApp, Hindrance, line_of, sources
from webdyno.systems.layouts.fills import CLIENTS, MIGRATES_ITSELF, OF_JVM, files_of_sql
from webdyno.systems.layouts.packages import DRIVERS, drivers_of_jvm, packages_of

SERVERS = {
    "SurrealDB": r"\bsurrealdb\b",
    "Cassandra": r"\bcassandra-driver\b|\bgocql\b|\bscylla\b",
    "Neo4j": r"\bneo4j\b",
    "ClickHouse": r"\bclickhouse\b",
    "InfluxDB": r"\binfluxdb",
    "Oracle Database": r"\b(?:cx_Oracle|oracledb|godror|sijms/go-ora)\b",
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
    "Firebase": r"\bfirebase[-_]admin\b|[\"']firebase[\"']",
}
ANOTHER = (
    "it needs {name}, which webdyno doesn't start: say by its variables where one is, and with "
    "which key; both variants then share it"
)


def _other_servers(app: FoundApp, folder: Path) -> Iterator[str]:
    """Yield what a list of packages names a client for, which of pages alone browsers need."""
    packages = packages_of(folder) if "http.server" not in (app.start or "") else ""
    for name, client in SERVERS.items():
        if re.search(client, packages):
            yield ANOTHER.format(name=name)


def with_gaps(app: FoundApp, folder: Path) -> FoundApp:
    """Name what is missing."""
    if not app.start:
        return app
    texts = {path: read_text(path) or "" for path in sources(folder, SOURCES | {".conf"})}
    text = "\n".join(texts.values())
    for doubt in (
        *_unmade_tables(app, folder, text),
        *_unaddressed(app, folder, texts),
        *_extensions(app, folder, text),
        *_other_servers(app, folder),
        *_unmade_settings(app, folder, text),
    ):
        app = app.hindered(Hindrance.BEHIND, doubt)
    return app


MAKES_TABLES = re.compile(
    rf"{MIGRATES_ITSELF.pattern}|{OF_JVM.pattern}"
    r"|(?i:create\s+table)|create_all\(|create_tables?\(|generate_schemas|createTable"
    r"|\bsynchronize\b|\.sync\(|SchemaUtils\.|EnsureCreated|\.Migrate(?:Async)?\(|[mM]igrator\b"
    r"|[mM]igrat\w*\(|\bsql\.init\.mode|embed_migrations"
    r"|prisma db push|\.schema\.(?:create|has)|Schema\.create|ensure_?(?:Tables|Schema)"
    r"|init_?[dD][bB]\("
)
"""In sources: they make the tables of a database by themselves."""
ASKS_TABLES = re.compile(
    r"(?i:\bselect\s[^;]{1,300}?\sfrom\s)|(?i:\binsert\s+into\s)|@Entity\b|\bdeclarative_base\b"
    r"|\bDeclarativeBase\b|\bmodels\.Model\b|\bgorm\.Model\b|\bModel\.init\(|\bprisma\.\w+\.find"
    r"|\bextends Model\b|\bdb\.Model\b|\btable!\s*\{|\b(?:pg|mysql|sqlite)Table\(|\bSQLModel\b"
    r"|\bschema \"\w+\" do"
)
"""In sources: they ask tables, or say what they are like."""
NO_TABLES = "nothing was found that makes its tables: setup = COMMAND below [app] does so once{how}"


def _unmade_tables(app: FoundApp, folder: Path, text: str) -> Iterator[str]:
    if app.services.get("db") not in CLIENTS or app.setup or app.prepare:
        return
    configured = sources(folder, {".properties", ".yml", ".yaml", ".xml"})
    text += drivers_of_jvm(app.start or "", folder)
    text += "\n".join(read_text(path) or "" for path in configured)
    if MAKES_TABLES.search(text) or not ASKS_TABLES.search(text):
        return
    files = [path.relative_to(folder).as_posix() for path in files_of_sql(folder)]
    how = f", as from {', '.join(files[:MOST_NAMED])}" if files else ""
    yield NO_TABLES.format(how=how)


EXTENSION = re.compile(
    r"(?i:\bcreate\s+extension\s+(?:if\s+not\s+exists\s+)?[\"']?(?P<made>postgis|vector|timescaledb|pg_cron)\b)"
    r"|(?P<client>\bpgvector\b|\bdjango\.contrib\.gis\b|\bgeoalchemy2?\b|\bpostgis\b|\btimescaledb\b)"
)
WANTS_EXTENSION = (
    "its database wants an extension ({name}), which PostgreSQL has where this machine's has it: "
    "install that first"
)


def _extensions(app: FoundApp, folder: Path, text: str) -> Iterator[str]:
    if app.services.get("db") != "postgresql":
        return
    files = [read_text(path) or "" for path in files_of_sql(folder)]
    if named := EXTENSION.search("\n".join([text, packages_of(folder), *files])):
        yield WANTS_EXTENSION.format(name=named["made"] or named["client"])


MOST_NAMED = 3
CONNECTS_REDIS = re.compile(
    r"\bnew (?:IO)?Redis\(|\bredis\.(?:Redis|StrictRedis|from_url|NewClient|createClient)\("
    r"|\bRedis\.(?:new|from_url|createClient)\b|\bJedisPool\(|\bRedisClient\.create\("
    r"|\bredis::Client::open\(|\baioredis\.\w+\("
)
REDIS_UNADDRESSED = (
    "it connects to Redis in {place}, and no variable for its address was found: have it read "
    '$REDIS_URL there, with services.cache = "redis" below [app]'
)


def _unaddressed(app: FoundApp, folder: Path, texts: dict[Path, str]) -> Iterator[str]:
    """Yield where Redis is connected to that nothing leads to."""
    if "redis" in app.services.values():
        return
    packages = packages_of(folder) + drivers_of_jvm(app.start or "", folder)
    if not DRIVERS["redis"].search(packages):
        return
    for path, text in texts.items():
        if match := CONNECTS_REDIS.search(text):
            yield REDIS_UNADDRESSED.format(place=line_of(folder, path, text, match.start()))
            return


SAMPLE = re.compile(
    r"(?P<stem>[\w-]+?)[._-](?:sample|example|dist|template|default)"
    r"(?P<ending>\.(?:php|py|json|ya?ml|toml|ini|js|cjs|ts|rb|conf|cfg|properties))"
    r"|(?P<whole>[\w-]+\.(?:php|py|json|ya?ml|toml|ini|js|ts|rb|conf|cfg|properties))"
    r"[._-](?:sample|example|dist|template|default)"
)
"""A file that shows what settings look like, and what theirs is called."""
READ_UNNAMED = {
    *("application.properties", "application.yml", "application.yaml", "appsettings.json"),
    *("database.yml", "local_settings.py"),
}
"""Which frameworks read without a source that names them."""
OF_SETTINGS = ("", "config/", "conf/", "app/config/", "src/main/resources/", "includes/", "src/")
UNMADE = (
    "it reads {target}, which isn't in Git: {sample} shows it; `cp {sample} {target}` in build "
    "makes it, and its addresses and passwords are to be right here"
)


def _unmade_settings(app: FoundApp, folder: Path, text: str) -> Iterator[str]:
    """Yield files of settings of which only a sample is there."""
    for inside in OF_SETTINGS:
        for path in sorted((folder / inside).glob("*.*")) if (folder / inside).is_dir() else ():
            match = SAMPLE.fullmatch(path.name)
            if match is None or EXAMPLE.fullmatch(path.name):
                continue
            name = match["whole"] or f"{match['stem']}{match['ending']}"
            of_viper = f'SetConfigName("{Path(name).stem}")' in text
            is_named = re.search(rf"[\"'/]{re.escape(name)}[\"']", text)
            is_read = name in READ_UNNAMED or of_viper or is_named
            if is_read and not (path.parent / name).exists() and name not in (app.build or ""):
                yield UNMADE.format(target=f"{inside}{name}", sample=f"{inside}{path.name}")
