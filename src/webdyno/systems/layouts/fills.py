"""What makes and fills tables: files of SQL, scripts of Node, tools of its mappers."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdyno.core.tables import read_text, table
from webdyno.systems.layouts.app import FoundApp, first_of, sources
from webdyno.systems.layouts.packages import build_files_of_jvm

CLIENTS = {
    "postgresql": "psql -qX -v ON_ERROR_STOP=1",
    "mariadb": "mariadb --user=$MYSQL_USER $MYSQL_DATABASE",
}
"""By service; they find the server by its variables."""
OF_ANOTHER = {
    "postgresql": re.compile(r"\bAUTO_INCREMENT\b|\bENGINE\s{0,9}=|\bTINYINT\b", re.IGNORECASE),
    "mariadb": re.compile(r"\b(?:BIG)?SERIAL\b|\bTIMESTAMPTZ\b|::\w|\bJSONB\b", re.IGNORECASE),
}
"""By service: what SQL has that is for another one."""
FOLDERS = (
    "",
    "db/",
    "database/",
    "sql/",
    "internal/",
    "internal/db/",
    "internal/database/",
    "data/",
)
TABLES = ("schema.sql", "init.sql", "database.sql", "dump.sql", "tables.sql", "create.sql")
ROWS = ("seed.sql", "seeds.sql", "data.sql", "fixtures.sql", "sample.sql", "demo.sql")
MIGRATES_ITSELF = re.compile(
    r"golang-migrate|\bmigrate\.New|\bmigrate!\(|\bgoose\.Up|embed_migrations!|AutoMigrate\("
    r"|run_pending_migrations|refinery|[Ff]lyway|[Ll]iquibase|postgrator|dbmate\."
)
MOST_FOLDERS = MOST_FILES = 50
OTHERS_SOURCES = {"node_modules", "vendor", ".venv", "target", "test", "tests"}
STEPS = {"migrations", "migration", "migrate", "drizzle", "versions"}
"""Folders whose files belong together."""
SAFE = re.compile(r"[\w./-]+")
"""The name of a folder that a shell takes as it stands."""
MAKES_TABLES = re.compile(r"\bcreate\s+table\b", re.IGNORECASE)
OWN_DATABASE = re.compile(
    r"^[ \t]*(?:(?:CREATE|DROP) DATABASE|USE)\b", re.IGNORECASE | re.MULTILINE
)
OWNERS = re.compile(
    r"^[ \t]*(?:ALTER [^\n;]{1,300} OWNER TO|GRANT|REVOKE) [^\n;]{1,300};[ \t\r]*$",
    re.IGNORECASE | re.MULTILINE,
)
WITHOUT_OWNERS = "sed -E '/^[ \\t]*(ALTER .* OWNER TO|GRANT|REVOKE) .*;[ \\t\\r]*$/Id'"
"""Of a dump that names roles, which aren't there."""
WITHOUT_DATABASE = "sed -E '/^[ \\t]*((CREATE|DROP) DATABASE|USE)\\b/Id'"
"""Of a dump that makes a database of its own name."""
IN_LINES = re.compile(r"^[ \t]*(?:CREATE|DROP) DATABASE\b[^;\n]*$", re.IGNORECASE | re.MULTILINE)
WITHOUT_LINES_OF_DATABASE = (
    "sed -E ':a;/^[ \\t]*(CREATE|DROP) DATABASE\\b[^;]*$/I{$!{N;ba}};"
    "/^[ \\t]*((CREATE|DROP) DATABASE|USE)\\b/Id'"
)
"""The same, where such a statement goes on in the next lines."""
NUMBERED = re.compile(r"[Vv]?\d[\w.-]*\.sql")
UP_TO_DOWN = {"+goose Down": "/+goose Down/,$d", "migrate:down": "/migrate:down/,$d"}
"""By a mark in a file of goose's or dbmate's: what cuts off how it is undone."""


def filled_by_files(folder: Path, service: str, sources_text: str) -> str | None:
    """Return what runs migrations that no program runs, or files of tables and of rows."""
    if (client := CLIENTS.get(service)) is None:
        return None
    places: tuple[str, ...] = FOLDERS
    tables = _migrations(folder) if not MIGRATES_ITSELF.search(sources_text) else None
    if tables is None and (name := _one_file(folder)):
        places = (f"{Path(name).parent}/", *FOLDERS)
        text = read_text(folder / name) or ""
        if OF_ANOTHER[service].search(text):
            return None
        of_database = WITHOUT_LINES_OF_DATABASE if IN_LINES.search(text) else WITHOUT_DATABASE
        without = [of_database] * bool(OWN_DATABASE.search(text))
        without += [WITHOUT_OWNERS] * bool(OWNERS.search(text))
        tables = " | ".join([f"{without[0]} {name}", *without[1:]]) if without else name
    if tables is None:
        return None
    rows = first_of(folder, *(f"{where}{name}" for name in ROWS for where in places))
    reads, quietly = ("-f ", " >/dev/null") if service == "postgresql" else ("<", "")
    commands = [
        f"{what} | {client}{quietly}" if " " in what else f"{client} {reads}{what}{quietly}"
        for what in filter(None, (tables, rows))
    ]
    return " && ".join(commands)


OF_JVM = re.compile(
    r"ddl-auto(?!\s{0,9}[=:]\s{0,9}(?:none|validate))|hbm2ddl|schema-management|database\.generation"
)
"""In a configuration of the JVM's."""


def filled_apart(app: FoundApp, folder: Path) -> FoundApp:
    """Have migrations of SQL run that no library and no mapper of the JVM's runs."""
    build_files = build_files_of_jvm(app.start or "", folder)
    configured = sources(folder, {".properties", ".yml", ".yaml"})
    text = build_files + "".join(read_text(path) or "" for path in configured)
    if not build_files or OF_JVM.search(text):
        return app
    return replace(app, setup=filled_by_files(folder, app.services.get("db", ""), text))


def _one_file(folder: Path) -> str | None:
    """Return the file that makes tables: by its name, or the only one that does."""
    if name := first_of(folder, *(f"{where}{name}" for name in TABLES for where in FOLDERS)):
        return name
    making = [path.relative_to(folder) for path in files_of_sql(folder)]
    usual = [path for path in making if path.name in TABLES]
    near = usual or [
        path for path in making if f"{path.parent}/" in FOLDERS or not path.parent.name
    ]
    return near[0].as_posix() if len(near) == 1 else None


def files_of_sql(folder: Path) -> list[Path]:
    """Return the files of SQL that make tables, those at the top first."""
    depths = ("*.sql", "*/*.sql", "*/*/*.sql", "*/*/*/*.sql")
    files = [path for depth in depths for path in sorted(folder.glob(depth))[:MOST_FILES]]
    return [path for path in files if _is_own(path, folder) and _makes_tables(path)]


def _is_own(path: Path, folder: Path) -> bool:
    inside = path.relative_to(folder)
    is_hidden = any(part.startswith(".") for part in inside.parts)
    is_safe = SAFE.fullmatch(str(inside)) is not None
    is_apart = not (OTHERS_SOURCES | STEPS).isdisjoint(inside.parts[:-1])
    return is_safe and not is_hidden and not is_apart


def _makes_tables(path: Path) -> bool:
    return MAKES_TABLES.search(read_text(path) or "") is not None


def _migrations(folder: Path) -> str | None:
    """Return what writes the migrations of a folder, as the usual tools name and mark them."""
    usual = [folder / f"{where}{name}" for where in FOLDERS for name in ("migrations", "migration")]
    patterns = ("*/migrations", "*/*/migrations", "*/*/*/migrations")
    others = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    for place in (*usual, *others[:MOST_FOLDERS]):
        inside = place.relative_to(folder)
        is_own = OTHERS_SOURCES.isdisjoint(inside.parts) and SAFE.fullmatch(str(inside))
        if is_own and (commands := list(_writes(folder, str(inside)))):
            return commands[0]
    return None


def _writes(folder: Path, inside: str) -> Iterator[str]:
    place = folder / inside
    # awk ends each file with a line's end; cat would join two statements
    for pattern in ("*.up.sql", "*/up.sql", "*.do.*sql"):
        if any(place.glob(pattern)):
            yield f"awk 1 {inside}/{pattern}"
    files = [path for path in sorted(place.glob("*.sql")) if NUMBERED.fullmatch(path.name)]
    if files:
        text = read_text(files[0]) or ""
        cut = next((cut for mark, cut in UP_TO_DOWN.items() if mark in text), None)
        yield f"sed -s '{cut}' {inside}/*.sql" if cut else f"awk 1 {inside}/*.sql"


MIGRATING_SCRIPTS = (
    *("migrate:deploy", "db:migrate:deploy", "db:migrate", "migrate", "migrations:run"),
    *("migration:run", "migration:up", "migrate:up", "migrate:latest", "db:push"),
)
SEEDING_SCRIPTS = ("db:seed", "seed", "seed:run", "db:seed:all")
"""Names of scripts that make tables, and of those that fill them; of each the first that is there.
"""


def prisma_generates(folder: Path, scripts: Mapping[str, str], needs: Collection[str]) -> list[str]:
    """Return what makes Prisma's client, where no script of the package's does so."""
    has_schema = (folder / "prisma/schema.prisma").is_file() and "@prisma/client" in needs
    is_made = any("prisma generate" in script for script in scripts.values())
    return ["npx prisma generate"] if has_schema and not is_made else []


OWN_MIGRATOR = re.compile(
    r"drizzle-orm/[\w-]+/migrator|\.migrate\.latest\(|\bmigrationsRun\s*:\s*true|\.runMigrations\("
)
"""In a source: the program migrates when it starts, unless the source is for that alone."""
OF_TOOLS = re.compile(r"migrat|seed|script", re.IGNORECASE)


def _migrates_itself(folder: Path) -> bool:
    return any(
        OWN_MIGRATOR.search(read_text(path) or "")
        for path in sources(folder)
        if not OF_TOOLS.search(path.relative_to(folder).as_posix())
    )


def filled_by_node(
    folder: Path, data: Mapping[str, Any], scripts: Mapping[str, str], needs: Collection[str]
) -> list[str]:
    """Return names of scripts, or commands, that make tables and fill them."""
    by_tool = next(_by_tools(folder, data, needs), ("", ""))
    if _migrates_itself(folder):
        return []
    commands = (
        next((name for name in names if name in scripts), command)
        for names, command in zip((MIGRATING_SCRIPTS, SEEDING_SCRIPTS), by_tool, strict=True)
    )
    return list(filter(None, commands))


def _by_tools(
    folder: Path, data: Mapping[str, Any], needs: Collection[str]
) -> Iterator[tuple[str, str]]:
    if "prisma" in needs and (folder / "prisma/schema.prisma").is_file():
        is_versioned = (folder / "prisma/migrations").is_dir()
        seeds = "npx prisma db seed" if table(data, "prisma").get("seed") else ""
        yield f"npx prisma {'migrate deploy' if is_versioned else 'db push'}", seeds
    if "drizzle-kit" in needs and any(folder.glob("drizzle.config.*")):
        journals = (f"{'*/' * depth}meta/_journal.json" for depth in range(1, 5))
        is_versioned = any(any(folder.glob(journal)) for journal in journals)
        yield f"npx drizzle-kit {'migrate' if is_versioned else 'push --force'}", ""
    if "knex" in needs and any(folder.glob("knexfile.*")):
        yield "npx knex migrate:latest", "npx knex seed:run" * (folder / "seeds").is_dir()
    tops = (folder, folder / "src") if (folder / ".sequelizerc").is_file() else (folder,)
    if "sequelize-cli" in needs and any((top / "migrations").is_dir() for top in tops):
        seeds = "npx sequelize-cli db:seed:all" * any((top / "seeders").is_dir() for top in tops)
        yield "npx sequelize-cli db:migrate", seeds
