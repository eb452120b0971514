"""Files of SQL that fill a database, for applications without migrations."""

from pathlib import Path

from webdyno.own.layouts.files import first_of

FOLDERS = ("", "db/", "database/", "sql/", "migrations/", "data/")
TABLES = ("schema.sql", "init.sql", "database.sql", "dump.sql", "tables.sql", "create.sql")
ROWS = ("seed.sql", "seeds.sql", "data.sql", "fixtures.sql", "sample.sql")
CLIENTS = {
    "postgresql": "psql -qX -v ON_ERROR_STOP=1 -f {file} >/dev/null",
    "mariadb": "mariadb --user=$MYSQL_USER $MYSQL_DATABASE <{file}",
}
"""By service; they find the server by its variables."""


def by_sql(folder: Path, service: str) -> str | None:
    """Give what runs the first file that makes tables, and the first that fills them."""
    if service not in CLIENTS:
        return None
    names = [
        first_of(folder, *(f"{where}{name}" for name in names for where in FOLDERS))
        for names in (TABLES, ROWS)
    ]
    commands = [CLIENTS[service].format(file=name) for name in names if name]
    return " && ".join(commands) if names[0] else None
