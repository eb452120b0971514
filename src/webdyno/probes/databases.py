"""What databases count themselves: their clients' statements, and how large tables are.

A service's `counts` is asked at a slot's edges, while there is no load. It prints lines of JSON,
objects with the keys of `DatabaseCounts`; a database that doesn't answer in time has reported
nothing.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import NamedTuple

from pydantic import BaseModel

from webdyno.core.errors import OperationError
from webdyno.core.readings import DatabaseUse, StatementUse
from webdyno.host.children import run_program
from webdyno.probes.scene import Scene
from webdyno.servers.service import RunningService

WITHIN_S = 5.0
MOST_STATEMENTS = 10
"""That are kept of a slot, of the most frequent and of those that took longest."""
MOST_TABLES = 5
WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE")


class StatementCounts(NamedTuple):
    """A statement, its values left out, since the database's start."""

    text: str
    calls: int
    rows: int | None
    """That it gave or changed."""
    time_s: float | None


class DatabaseCounts(BaseModel):
    """What a database says of itself."""

    statements: list[StatementCounts] = []
    tables: dict[str, int] = {}
    """Bytes, indexes included, by table."""


def probe(scene: Scene) -> Generator[None, None, dict[str, DatabaseUse]]:
    """Report what the databases of the loaded variant did for their clients, by role."""
    services = scene.stack.services()
    before = {
        role: counts for role, service in services.items() if (counts := read_counts(service))
    }
    yield
    return {
        role: used_between(then, counts)
        for role, then in before.items()
        if (counts := read_counts(services[role]))
    }


def read_counts(service: RunningService) -> DatabaseCounts | None:
    """Ask a database; None where it can't say."""
    if not (words := service.filled.words("counts")):
        return None
    with suppress(OperationError, ValueError, TypeError):
        done = run_program(
            words,
            within_s=WITHIN_S,
            user=service.testbed.user,
            environment=service.environment,
            folder=service.home,
        )
        if done.returncode == 0:
            return read(done.stdout)
    return None


def read(said: str) -> DatabaseCounts:
    """Read what it printed; raise ValueError where that isn't what it should be."""
    counts: dict[str, object] = {}
    for line in filter(None, said.splitlines()):
        counts |= json.loads(line)
    return DatabaseCounts.model_validate(counts)


def used_between(then: DatabaseCounts, now: DatabaseCounts) -> DatabaseUse:
    """Give what was done between two readings."""
    before = {statement.text: statement for statement in then.statements}
    done = [use for now_ in now.statements if (use := _since(now_, before.get(now_.text))).calls]
    times = [statement.time_s for statement in done if statement.time_s is not None]
    written = [
        statement.rows
        for statement in done
        if statement.rows is not None and statement.text.startswith(WRITES)
    ]
    return DatabaseUse(
        calls=sum(statement.calls for statement in done),
        time_s=sum(times) if times else None,
        rows_written=sum(written)
        if all(statement.rows is not None for statement in done)
        else None,
        statements=_most(done),
        bytes_before=sum(then.tables.values()),
        bytes_after=sum(now.tables.values()),
        grown=_grown(then.tables, now.tables),
    )


def _since(now: StatementCounts, then: StatementCounts | None) -> StatementUse:
    """Give a statement's counts since an earlier reading; one that stepped back began again."""
    if then is None or now.calls < then.calls:
        then = StatementCounts(now.text, 0, 0, 0.0)
    return StatementUse(
        text=" ".join(now.text.split()),
        calls=now.calls - then.calls,
        rows=None if now.rows is None else max(now.rows - (then.rows or 0), 0),
        time_s=None if now.time_s is None else max(now.time_s - (then.time_s or 0), 0.0),
    )


def _most(done: list[StatementUse]) -> list[StatementUse]:
    frequent = sorted(done, key=lambda use: -use.calls)[:MOST_STATEMENTS]
    slow = sorted(done, key=lambda use: -(use.time_s or 0.0))[:MOST_STATEMENTS]
    return frequent + [use for use in slow if use not in frequent]


def _grown(then: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Give the bytes by which tables grew, the largest growth first."""
    more = {name: size - then.get(name, 0) for name, size in now.items()}
    grown = sorted((item for item in more.items() if item[1] > 0), key=lambda item: -item[1])
    return dict(grown[:MOST_TABLES])
