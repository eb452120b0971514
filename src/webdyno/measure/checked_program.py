"""A program that is held to rules: what it answers, and what its database says of that."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from webdyno.core.pages import PageParser
from webdyno.core.request import header
from webdyno.core.stack import Site
from webdyno.core.text import begin_of
from webdyno.host.children import must, run_program
from webdyno.load.interface import ServerResponse
from webdyno.probes.status import DatabaseCounts, read_counts
from webdyno.servers.service import RunningService

WITHIN_S = 30.0
SHOWN_LETTERS = 80
READING = ("SELECT", "WITH")
CATALOG = "pg_"
"""In statements by which drivers ask for types, and let go of locks: `pg_advisory_unlock_all`."""


class BrokenRule(Exception):  # noqa: N818 (it becomes a warning)
    """A program doesn't do what its site asks for; the message says what."""


def quoted(value: object) -> str:
    """Return what a program said, as a message names it."""
    return begin_of(repr(value), SHOWN_LETTERS)


class Asked(Protocol):
    """Who can be asked, such as a `Conversation`."""

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> ServerResponse:
        """Send a request and wait for the response; raise NoResponse."""


class Database(Protocol):
    """The database behind a program."""

    def rows(self, sql: str) -> list[list[str]]:
        """Run SQL in it, past the program, and give what that gives."""

    def counts(self) -> DatabaseCounts | None:
        """Return its clients' statements; None where it doesn't count them."""


@dataclass(frozen=True)
class RunningDatabase:
    """A database service that runs."""

    service: RunningService

    def rows(self, sql: str) -> list[list[str]]:
        """Run SQL as its superuser, by a program of its own."""
        done = run_program(
            self.service.filled.words("query"),
            within_s=WITHIN_S,
            given=f"{sql};",
            user=self.service.testbed.user,
            environment=self.service.environment,
            folder=self.service.home,
        )
        said = must(done, f"{self.service.role.service.title} can't be asked")
        return [line.split("|") for line in said.splitlines()]

    def counts(self) -> DatabaseCounts | None:
        return read_counts(self.service)


def database_of(services: Mapping[str, RunningService], site: Site) -> Database | None:
    """Return a site's database; None where it has none on this host."""
    for role in site.services:
        if role in services and services[role].filled.words("query"):
            return RunningDatabase(services[role])
    return None


@dataclass(frozen=True)
class ProgramResponse:
    """A response, and the request that it was given to."""

    to: str
    said: ServerResponse

    def header(self, name: str) -> str | None:
        return header(dict(self.said.headers), name)

    def with_status(self, status: int, why: str = "") -> "ProgramResponse":
        """Return itself; raise BrokenRule where it has another status."""
        if self.said.status != status:
            because = f": {why}" if why else ""
            raise BrokenRule(f"{self.to} has status {self.said.status}, {status} is right{because}")
        return self

    def json(self, kind: type[dict[str, Any]] | type[list[Any]] = dict) -> Any:  # noqa: ANN401
        """Read its body; raise BrokenRule where it is no JSON of a kind."""
        try:
            value = json.loads(self.said.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, kind):
            what = "a JSON object" if kind is dict else "a JSON array"
            raise BrokenRule(f"{self.to} should give {what}, and gives {self.begin!r}")
        return value

    @property
    def begin(self) -> str:
        return begin_of(self.said.body.decode("utf-8", "replace"), SHOWN_LETTERS)


class ShownTable(PageParser):
    """Reads a page's table: the texts of its cells, entities resolved."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.begin = ""
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self._is_cell = False

    def handle_decl(self, decl: str) -> None:
        self.begin = self.begin or decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Note the element; begin a row or a cell."""
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"} and self.rows:
            self.rows[-1].append("")
            self._is_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._is_cell = False

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data


@dataclass
class CheckedProgram:
    """A program that runs."""

    client: Asked
    database: Database | None = None
    last: str = field(default="", init=False)
    """What it was asked last."""

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> ProgramResponse:
        """Send a request; raise NoResponse."""
        self.last = f"{method} {path}"
        return ProgramResponse(self.last, self.client.ask(method, path, headers or {}, body))

    @property
    def known(self) -> Database:
        """Its database, of a site that has one."""
        if self.database is None:
            raise ValueError("the site has no database")
        return self.database

    @contextmanager
    def reading(self, least: int, what: str, *, one_row_each: bool = True) -> Iterator[None]:
        """Demand so many statements that read, of a row each, where they are counted."""
        before = self.known.counts()
        yield
        after = self.known.counts()
        if before is None or after is None or not after.statements:
            return
        done = _reads_between(before, after)
        calls = sum(calls for calls, _ in done.values())
        if calls < least:
            raise BrokenRule(
                f"{what} made {calls} statements that read, {least} are right: each response "
                "has to read its rows from the database, each row by a statement of its own"
            )
        for text, (calls, rows) in done.items():
            if one_row_each and rows > calls:
                raise BrokenRule(
                    f"{what}: a statement reads {rows / calls:.3g} rows, and one is right: "
                    f"{begin_of(' '.join(text.split()), SHOWN_LETTERS)}"
                )


def _reads_between(before: DatabaseCounts, after: DatabaseCounts) -> dict[str, tuple[int, int]]:
    """Return calls and rows of statements that read, by text."""
    known = {
        statement.text: (statement.calls, statement.rows or 0) for statement in before.statements
    }
    done = {}
    for statement in after.statements:
        calls, rows = known.get(statement.text, (0, 0))
        reads = statement.text.lstrip().upper().startswith(READING)
        is_own = reads and CATALOG not in statement.text
        if statement.calls > calls and is_own:
            done[statement.text] = (statement.calls - calls, (statement.rows or 0) - rows)
    return done
