"""Changes that no server can notice, going by the names of the files."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

UNREAD = (
    "*.md",
    "*.rst",
    "*.adoc",
    "LICENSE*",
    "LICENCE*",
    "COPYING*",
    "AUTHORS*",
    "CHANGELOG*",
    "CHANGES*",
    "CONTRIBUTING*",
    "CODEOWNERS",
    ".gitignore",
    ".mailmap",
)
"""Names of documentation. Not of folders: what lies in `docs` may well be served. Nor is
`webdyno.toml` among them: who has just written one wants to see a measurement."""
MOST_NAMED = 3


def nothing_to_measure(changed: Sequence[str]) -> str | None:
    """Say why two revisions needn't be measured, whose files differ so; None where they must be."""
    if not changed:
        return "nothing changed: both are the same"
    if not all(map(_is_unread, changed)):
        return None
    more = len(changed) - MOST_NAMED
    named = ", ".join(changed[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"only documentation changed ({named}): nothing to measure"


def _is_unread(path: str) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in UNREAD)
