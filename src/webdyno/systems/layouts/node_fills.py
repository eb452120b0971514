"""What fills the database of a Node application: its scripts, else the tool of its mapper."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from webdyno.systems.tables import table

MIGRATES = (
    *("migrate:deploy", "db:migrate:deploy", "db:migrate", "migrate", "migrations:run"),
    *("migration:run", "migration:up", "migrate:up", "migrate:latest", "db:push"),
)
SEEDS = ("db:seed", "seed", "seed:run", "db:seed:all")
"""Names of scripts that make tables, and of those that fill them; of each the first that is there.
"""


def generates(folder: Path, scripts: Mapping[str, str], needs: Collection[str]) -> list[str]:
    """Return what makes Prisma's client, where no script of the package's does so."""
    has_schema = (folder / "prisma/schema.prisma").is_file() and "@prisma/client" in needs
    is_made = any("prisma generate" in script for script in scripts.values())
    return ["npx prisma generate"] if has_schema and not is_made else []


def fills_of(
    folder: Path, data: Mapping[str, Any], scripts: Mapping[str, str], needs: Collection[str]
) -> list[str]:
    """Return names of scripts, or commands, that make tables and fill them."""
    by_tool = next(_by_tools(folder, data, needs), ("", ""))
    commands = (
        next((name for name in names if name in scripts), command)
        for names, command in zip((MIGRATES, SEEDS), by_tool, strict=True)
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
    if "sequelize-cli" in needs and (folder / "migrations").is_dir():
        seeds = "npx sequelize-cli db:seed:all" * (folder / "seeders").is_dir()
        yield "npx sequelize-cli db:migrate", seeds
