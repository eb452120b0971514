"""Databases whose address stands in parts, or where no variable leads to it."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import SOURCES, sources

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
    rf"""{HERE}|(?:\bhost(?:addr)?=|@tcp\(|://[^\s"'/@]{{1,80}}@){HERE}""",
    re.IGNORECASE | re.MULTILINE,
)
OF_TOOLS = re.compile(r"compose|^servers\.json$")
"""Files of Compose and pgAdmin."""
CONFIGURED = {".json", ".ini", ".yml", ".yaml", ".toml"}
MAY_HAVE_DATABASE = re.compile(
    r"sql|database|\bdb\b|postgres|orm|\bpg\b|knex|environ|\benv\b", re.IGNORECASE
)
"""In sources: without it a driver in a list of packages is unused."""
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


def redis_by_parts(text: str) -> dict[str, str]:
    """Return the variables by which sources find Redis, each with the value it gets."""
    variables = {match[0]: PARTS_OF_REDIS[match["part"]] for match in OF_REDIS.finditer(text)}
    host, port, both = (PARTS_OF_REDIS[part] for part in ("HOST", "PORT", "ADDR"))
    if not {host, both} & {*variables.values()}:
        return {}
    whole = host if port in variables.values() else both
    return {name: whole if value == host else value for name, value in sorted(variables.items())}


def not_found(service: str, folder: Path, text: str) -> Iterator[str]:
    """Return what to do about a database whose address no variable holds."""
    for path in sources(folder, SOURCES | CONFIGURED):
        file = read_text(path) or ""
        if (host := HOST.search(file)) and not OF_TOOLS.search(path.name):
            line = file.count("\n", 0, host.start()) + 1
            yield FIXED.format(service=service, place=f"{path.relative_to(folder)}:{line}")
            return
    if MAY_HAVE_DATABASE.search(text):
        yield ELSEWHERE.format(service=service)
