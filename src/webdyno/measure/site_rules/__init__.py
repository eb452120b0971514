"""The rules of sites: what a program has to do for its answer, checked before it is measured.

A site's pages say what a single response is (`paths` in its `site.toml`). What shows only over
several requests, or in the database, is here: a function for each rule, which raises BrokenRule in
words for people. A rule that a site names in `rules` is an entry of RULES.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from random import Random

from webdyno.core.load import Load
from webdyno.core.stack import Rule, Site
from webdyno.load.asking import Conversation, NoResponse
from webdyno.measure.site_rules.database import crud, db, fortunes, queries, updates
from webdyno.measure.site_rules.program import BrokenRule, CheckedProgram, database_of
from webdyno.servers.running import RunningStack

__all__ = ["RULES", "broken_rule"]

MESSAGE = {"message": "Hello, World!"}
SIZES_BYTES = (0, 1, 65_537, 10_000_000)


def json_object(program: CheckedProgram) -> None:
    """The object and nothing else."""
    answer = program.ask("/json").with_status(200)
    if (given := answer.json()) != MESSAGE:
        raise BrokenRule(f"{answer.to} should give {MESSAGE}, and gives {given!r:.80}")


def upload(program: CheckedProgram) -> None:
    """Length and sum of whatever was sent."""
    for size_bytes in SIZES_BYTES:
        body = Random(size_bytes).randbytes(size_bytes)
        headers = {"Content-Type": "application/octet-stream"}
        answer = program.ask("/upload", method="POST", headers=headers, body=body)
        given = answer.with_status(200, f"{size_bytes:,} bytes were sent").json()
        right = {"bytes": size_bytes, "sha256": hashlib.sha256(body).hexdigest()}
        if given != right:
            raise BrokenRule(
                f"{answer.to} with {size_bytes:,} bytes should give {right}, and gives "
                f"{given!r:.120}"
            )


RULES: Mapping[Rule, Callable[[CheckedProgram], None]] = {
    "json": json_object,
    "db": db,
    "queries": queries,
    "updates": updates,
    "fortunes": fortunes,
    "crud": crud,
    "upload": upload,
}


def broken_rule(
    stack: RunningStack, site: Site, load: Load, client_entry: Sequence[str]
) -> str | None:
    """Say which rule of its site a running stack breaks, and how; None if it keeps them all.

    Where the site's database is on another host, or is one that can't be asked, nothing is checked.
    """
    database = database_of(stack.services(), site)
    if site.services and database is None:
        return None
    with Conversation(stack.url, load, client_entry) as conversation:
        program = CheckedProgram(conversation, database)
        for rule in site.rules:
            try:
                RULES[rule](program)
            except BrokenRule as broken:
                return str(broken)
            except NoResponse as none:
                return f"{program.last} got no response: {none}"
    return None
