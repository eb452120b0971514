"""Files of SQL that make and fill the tables of an application which doesn't do so by itself."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.systems.layouts.app import first_of
from webdyno.systems.tables import read_text

CLIENTS = {
    "postgresql": "psql -qX -v ON_ERROR_STOP=1",
    "mariadb": "mariadb --user=$MYSQL_USER $MYSQL_DATABASE",
}
"""By service; they find the server by its variables."""
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
ROWS = ("seed.sql", "seeds.sql", "data.sql", "fixtures.sql", "sample.sql")
MIGRATES_ITSELF = re.compile(
    r"golang-migrate|\bmigrate\.New|\bmigrate!\(|\bgoose\.Up|embed_migrations!|AutoMigrate\("
    r"|run_pending_migrations|refinery|[Ff]lyway|[Ll]iquibase|postgrator|dbmate\."
)
MAKES_TABLES = re.compile(r"\bcreate\s+table\b", re.IGNORECASE)
OWN_DATABASE = re.compile(
    r"^[ \t]*(?:(?:CREATE|DROP) DATABASE|USE)\b", re.IGNORECASE | re.MULTILINE
)
WITHOUT_DATABASE = "sed -E '/^[ \\t]*((CREATE|DROP) DATABASE|USE)\\b/Id'"
"""Of a dump that makes a database of its own name."""
NUMBERED = re.compile(r"[Vv]?\d+[\w.-]*\.sql")
UP_TO_DOWN = {"+goose Down": "/+goose Down/,$d", "migrate:down": "/migrate:down/,$d"}
"""By a mark in a file of goose's or dbmate's: what cuts off how it is undone."""


def filled_by_files(folder: Path, service: str, sources_text: str) -> str | None:
    """Return what runs migrations that no program runs, or files of tables and of rows."""
    if (client := CLIENTS.get(service)) is None:
        return None
    rows = first_of(folder, *(f"{where}{name}" for name in ROWS for where in FOLDERS))
    tables = _migrations(folder) if not MIGRATES_ITSELF.search(sources_text) else None
    if tables is None and (name := _one_file(folder)):
        has_own = OWN_DATABASE.search(read_text(folder / name) or "")
        tables = f"{WITHOUT_DATABASE} {name}" if has_own else name
    if tables is None:
        return None
    quietly = " >/dev/null" if service == "postgresql" else ""
    commands = [
        f"{what} | {client}{quietly}" if " " in what else _by_name(service, what)
        for what in filter(None, (tables, rows))
    ]
    return " && ".join(commands)


def _by_name(service: str, file: str) -> str:
    client = CLIENTS[service]
    return f"{client} -f {file} >/dev/null" if service == "postgresql" else f"{client} <{file}"


def _one_file(folder: Path) -> str | None:
    """Return the file that makes tables: by its name, or the only one that does."""
    if name := first_of(folder, *(f"{where}{name}" for name in TABLES for where in FOLDERS)):
        return name
    files = [path for where in FOLDERS for path in sorted((folder / where).glob("*.sql"))]
    making = [path for path in files if MAKES_TABLES.search(read_text(path) or "")]
    return making[0].relative_to(folder).as_posix() if len(making) == 1 else None


def _migrations(folder: Path) -> str | None:
    """Return what writes the migrations of a folder, as the usual tools name and mark them."""
    for where in FOLDERS:
        for name in ("migrations", "migration"):
            if commands := list(_writes(folder, f"{where}{name}")):
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
