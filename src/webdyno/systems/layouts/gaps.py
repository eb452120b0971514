"""What an application needs by its files, and nothing that was found for it provides.

Each is named with what to do: what a layout doesn't know would show as a failure, or not at all.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.env_files import EXAMPLE
from webdyno.systems.layouts.app import SKIPPED, SOURCES, FoundApp, Hindrance, first_of, sources
from webdyno.systems.layouts.fills import CLIENTS, MIGRATES_ITSELF, files_of_sql
from webdyno.systems.layouts.packages import DRIVERS, drivers_of_jvm, packages_of
from webdyno.systems.layouts.start_scripts import SCRIPT_FOLDERS, SHELL_COMMENT, image_command

COMPILED = {"go.mod", "Cargo.toml", "CMakeLists.txt"}
"""By what is found whose program an image starts as well."""
OF_SHELL = re.compile(r"[&|;$`<>]")
OF_PORT = re.compile(r"port|listen|addr|bind|host", re.IGNORECASE)
IN_IMAGE = "{name} starts it with `{words}`, which its program may need here as well"


def with_words_of_image(app: FoundApp, folder: Path) -> FoundApp:
    """Start a program with the words that its image starts it with."""
    if app.by not in COMPILED or not app.start or " " in app.start.strip():
        return app
    name = first_of(folder, "Containerfile", "Dockerfile")
    command = image_command(read_text(folder / name) or "") if name else None
    program, _, words = (command or "").partition(" ")
    is_own = program.startswith((".", "/")) or "/" not in program
    if name is None or not words or not is_own or OF_SHELL.search(command or ""):
        return app
    if program.rpartition("/")[2] in {"go", "cargo", "sh", "bash", "air", "tini", "dumb-init"}:
        return app
    if OF_PORT.search(words) or re.search(r"(?:^|[ =])/", words):
        return replace(app, doubts=(*app.doubts, IN_IMAGE.format(name=name, words=words)))
    note = f"{name} starts it with {words}"
    return replace(app, start=f"{app.start} {words}", notes=(*app.notes, note))


OUTSIDE = {
    "Cargo.toml": re.compile(r"""\bpath\s{0,9}=\s{0,9}"(?P<what>(?:\.\./)+[\w./-]+)\""""),
    "go.mod": re.compile(r"=>[ \t]+(?P<what>(?:\.\./)+[\w./-]+)"),
    "package.json": re.compile(r"""\"(?:file|link):(?P<what>(?:\.\./)+[\w./-]+)\""""),
    "requirements.txt": re.compile(r"^(?:-e[ \t]+)?(?P<what>(?:\.\./)+[\w./-]+)", re.MULTILINE),
    "pyproject.toml": re.compile(r"""\bpath\s{0,9}=\s{0,9}"(?P<what>(?:\.\./)+[\w./-]+)\""""),
}
NOT_HERE = "{file} wants {what}, which isn't there: a revision has only what its repository has"
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
    "Firebase": r"\bfirebase[-_]admin\b|[\"']firebase[\"']",
}
ANOTHER = (
    "it needs {name}, which webdyno doesn't start: have one run on this machine, which both "
    "variants then share, or say by its variables where one is"
)


def _other_servers(folder: Path) -> Iterator[str]:
    """Yield what a list of packages names a client for, and what it takes from elsewhere."""
    packages = packages_of(folder)
    for name, client in SERVERS.items():
        if re.search(client, packages):
            yield ANOTHER.format(name=name)
    for file, taken in OUTSIDE.items():
        for match in taken.finditer(read_text(folder / file) or ""):
            if not (folder / match["what"]).exists():
                yield NOT_HERE.format(file=file, what=match["what"])
                break


def with_gaps(app: FoundApp, folder: Path) -> FoundApp:
    """Name what is missing."""
    if not app.start:
        return app
    texts = {path: read_text(path) or "" for path in sources(folder, SOURCES | {".conf"})}
    text = "\n".join(texts.values())
    for doubt in (
        *_unmade_tables(app, folder, text),
        *_unaddressed(app, folder, texts),
        *_other_servers(folder),
        *_unmade_settings(app, folder, text),
        *_unmade_files(app, folder, texts),
    ):
        app = app.hindered(Hindrance.BEHIND, doubt)
    return app


MAKES_TABLES = re.compile(
    rf"{MIGRATES_ITSELF.pattern}"
    r"|(?i:create\s+table)|create_all\(|create_tables?\(|generate_schemas|createTable|hbm2ddl|ddl-auto"
    r"|\bsynchronize\b|\.sync\(|SchemaUtils\.|EnsureCreated|\.Migrate(?:Async)?\(|[mM]igrator\b"
    r"|[mM]igrat\w*\(|\bsql\.init\.mode|embed_migrations|schema-management|database\.generation"
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
            yield REDIS_UNADDRESSED.format(place=_place(folder, path, match.start(), text))
            return


def _place(folder: Path, path: Path, position: int, text: str) -> str:
    return f"{path.relative_to(folder)}:{text.count(chr(10), 0, position) + 1}"


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
            is_read = name in READ_UNNAMED or re.search(rf"[\"'/]{re.escape(name)}[\"']", text)
            if is_read and not (path.parent / name).exists() and name not in (app.build or ""):
                yield UNMADE.format(target=f"{inside}{name}", sample=f"{inside}{path.name}")


EMBEDS = re.compile(r"^//go:embed[ \t]+(?:all:)?(?P<what>[\w./-]+)", re.MULTILINE)
NOT_EMBEDDED = "{place} embeds {what}, which isn't in Git: build has to make it first, as {by} does"
BUILD_SCRIPTS = ("build.sh", "render-build.sh", "render_build.sh")
FRONT_BUILD = re.compile(
    r"\b(?:npm|pnpm|yarn|bun)(?:@[\w.]+)?(?: --?[\w-]+(?:[= ][\w./-]+)?)*(?: run)? build(?::\w+)?\b"
)
OTHER_STEPS = re.compile(
    r"\b(?:createcachetable|compilemessages|templ generate|buf generate|trunk build"
    r"|wasm-pack build|tailwindcss -\w[^\n&;|]{0,100}|cap db:migrate|lexik:jwt:generate-keypair)\b"
)
"""Of builds and deployments: what makes something that is there before a program starts."""
LACKS_STEP = "{by} also runs `{step}`, which neither build nor setup has"
RUNS = re.compile(r"^[ \t]*RUN[ \t]+(?P<line>[^\n]+)", re.MULTILINE | re.IGNORECASE)


def _unmade_files(app: FoundApp, folder: Path, texts: dict[Path, str]) -> Iterator[str]:
    """Yield what a build makes elsewhere, and what sources take into themselves."""
    steps = list(_steps_elsewhere(folder))
    made = f"{app.build or ''} && {app.setup or ''} && {app.prepare or ''}"
    for path, text in texts.items():
        for match in EMBEDS.finditer(text) if path.suffix == ".go" else ():
            what = match["what"]
            if not any(path.parent.glob(f"{what}*")) and what not in made:
                place = _place(folder, path, match.start(), text)
                by = next((name for name, step in steps if FRONT_BUILD.search(step)), "a release")
                yield NOT_EMBEDDED.format(place=place, what=what, by=by)
                return
    for name, step in steps:
        is_front = FRONT_BUILD.fullmatch(step) is not None
        is_made = FRONT_BUILD.search(made) if is_front else " ".join(step.split()[:2]) in made
        if not is_made:
            yield LACKS_STEP.format(by=name, step=step)
            return


def _steps_elsewhere(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield steps of build scripts and images, each behind its file's name."""
    scripts = [f"{where}{name}" for where in SCRIPT_FOLDERS for name in BUILD_SCRIPTS]
    for name in (*scripts, "Dockerfile", "Containerfile", "nixpacks.toml", "render.yaml"):
        text = read_text(folder / name)
        if text is None or not SKIPPED.isdisjoint(Path(name).parts[:-1]):
            continue
        if name in {"Dockerfile", "Containerfile"}:
            text = "\n".join(RUNS.findall(text.replace("\\\n", " ")))
        for pattern in (FRONT_BUILD, OTHER_STEPS):
            for match in pattern.finditer(SHELL_COMMENT.sub("", text)):
                yield name, match[0].strip()
