"""What an application needs by its files, and nothing that was found for it provides.

Each is named with what to do: what a layout doesn't know would show as a failure, or not at all.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.env_files import EXAMPLE
from webdyno.systems.layouts.app import SOURCES, FoundApp, Hindrance, line_of, sources
from webdyno.systems.layouts.fills import CLIENTS, MIGRATES_ITSELF, OF_JVM, files_of_sql
from webdyno.systems.layouts.packages import DRIVERS, drivers_of_jvm, packages_of
from webdyno.systems.layouts.wanted import ENDS_IF_EMPTY


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
        *_unmade_settings(app, folder, text),
        *_ungiven_flags(app, folder, texts),
    ):
        app = app.hindered(Hindrance.BEHIND, doubt)
    return app


MAKES_TABLES = re.compile(
    rf"{MIGRATES_ITSELF.pattern}|{OF_JVM.pattern}"
    r"|(?i:create\s+table)|create_all\b|create_tables?\(|generate_schemas|createTable"
    r"|\bsynchronize\b(?!\s{0,9}:\s{0,9}false)|\.sync\(|SchemaUtils\.|EnsureCreated|\.Migrate(?:Async)?\(|[mM]igrator\b"
    r"|[mM]igrat\w*\(|\bsql\.init\.mode|embed_migrations"
    r"|prisma db push|\.schema\.(?:create|has)|Schema\.create|ensure_?(?:Tables|Schema)"
    r"|init_?[dD][bB]\("
)
"""In sources: they make the tables of a database by themselves."""
ASKS_TABLES = re.compile(
    r"(?i:\bselect\s[^;]{1,300}?\sfrom\s)|(?i:\binsert\s+into\s)|@Entity\b|\bdeclarative_base\b"
    r"|\bDeclarativeBase\b|\bmodels\.Model\b|\bgorm\.Model\b|\bModel\.init\(|\bprisma\.\w+\.find"
    r"|\bextends Model\b|\bdb\.Model\b|\btable!\s*\{|\b(?:pg|mysql|sqlite)Table\(|\bSQLModel\b"
    r"|\bschema \"\w+\" do|\bDbSet<"
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
    ran = [word for word in (app.setup or "").split() if re.fullmatch(r"\w.*\.sql", word)]
    steps = [path for word in ran for path in folder.glob(word)]
    files = [read_text(path) or "" for path in (*files_of_sql(folder), *steps)]
    if named := EXTENSION.search("\n".join([text, packages_of(folder), *files])):
        yield WANTS_EXTENSION.format(name=named["made"] or named["client"])


MOST_NAMED = 3
CLIENTS_OF_REDIS = re.compile(
    rf"{DRIVERS['redis'].pattern}|\b(?:django|channels)[-_]redis\b|\bpredis/predis\b"
)
"""In lists of packages: others that bring such a driver with them."""
CONNECTS_REDIS = re.compile(
    r"\bnew (?:\\?Predis\\Client|\\?(?:IO)?Redis)\("
    r"|\bredis\.(?:Redis|StrictRedis|from_url|NewClient|createClient)\("
    r"|\bRedis\.(?:new|from_url|createClient)\b|\bJedisPool\(|\bRedisClient\.create\("
    r"|\bredis::Client::open\(|\baioredis\.\w+\(|\bRedix\.start_link\("
    r"|[\"']rediss?://(?:localhost|127\.0\.0\.1)\b"
)
OF_REDIS = re.compile(
    r"\bfrom [\"'](?:io)?redis[\"']|\brequire\([\"'](?:io)?redis[\"']\)|^from redis\b", re.MULTILINE
)
BARE_CLIENT = re.compile(r"(?<![\w.])(?:createClient|(?:Strict)?Redis)\(")
"""In a source that imports it from Redis' package: of other packages it is something else."""
REDIS_UNADDRESSED = (
    "it connects to Redis in {place}, and no variable for its address was found: have it read "
    '$REDIS_URL there, with services.cache = "redis" below [app]'
)


def _unaddressed(app: FoundApp, folder: Path, texts: Mapping[Path, str]) -> Iterator[str]:
    """Yield where Redis is connected to that nothing leads to."""
    if "redis" in app.services.values():
        return
    packages = packages_of(folder) + drivers_of_jvm(app.start or "", folder)
    packages += read_text(folder / "composer.json") or ""
    if not CLIENTS_OF_REDIS.search(packages):
        return
    for path, text in texts.items():
        bare = BARE_CLIENT.search(text) if OF_REDIS.search(text) else None
        if match := CONNECTS_REDIS.search(text) or bare:
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


EMPTY_FLAG = re.compile(
    r"""(?:\b(?P<pointer>\w{1,60})\s{0,9}:?=\s{0,9})?\b[\w.]{1,60}(?:\(\))?\.String(?:Var)?P?\("""
    r"""(?:&(?P<variable>[\w.]{1,60}),\s{0,9})?"(?P<name>[\w.-]{1,60})",\s{0,9}(?:"\w?",\s{0,9})?"","""
)
"""A flag of Go's that has no value unless it is given."""
INSISTED = r"(?:filepath\.IsAbs|\buuid\.(?:Must)?Parse)\({variable}\)|(?<![\w.]){variable}{ends}"
PROGRAM_OF_GO = re.compile(r"^package main\b", re.MULTILINE)
UNGIVEN = (
    "it ends without {flags}, which {place} reads and which have no default: --start is to give "
    "them, as in --start '{start} {first} VALUE'"
)


def _ungiven_flags(app: FoundApp, folder: Path, texts: Mapping[Path, str]) -> Iterator[str]:
    """Yield flags that a program ends without, and that it isn't started with."""
    start = app.start or ""
    built = (folder / (app.build or "").rpartition(" ")[2]).resolve()
    for path, text in texts.items():
        is_another_s = PROGRAM_OF_GO.search(text) and path.parent.resolve() != built
        flags = [] if path.suffix != ".go" or is_another_s else _flags_insisted_on(text)
        lacking = [flag for flag in flags if f"{flag} " not in f"{start} "]
        if lacking:
            place, named = path.relative_to(folder), ", ".join(lacking)
            yield UNGIVEN.format(flags=named, place=place, start=start, first=lacking[0])
            return


def _flags_insisted_on(text: str) -> list[str]:
    flags = {
        match["name"]: re.escape(match["variable"] or f"*{match['pointer']}")
        for match in EMPTY_FLAG.finditer(text)
    }
    return [
        f"-{name}"
        for name, variable in flags.items()
        if re.search(INSISTED.format(variable=variable, ends=ENDS_IF_EMPTY), text)
    ]
