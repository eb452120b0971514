"""What servers and databases count themselves.

A service's `[status]` says how nginx's stub_status, Apache's mod_status, php-fpm's status page and
their like are asked; its `counts` is a command that prints what a database says of its clients'
statements and its tables. Both are asked at a slot's edges, while there is no load; who doesn't
answer at once, or not as it should, has reported nothing.
"""

import json
import re
import struct
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, Field

from webdyno.core.errors import OperationError
from webdyno.core.load import Load
from webdyno.core.readings import DatabaseUse, ServerStatus, StatementUse
from webdyno.core.service import StatusKind, StatusSource
from webdyno.host.children import run_program
from webdyno.load.asking import Conversation, NoResponse
from webdyno.load.interface import GeneratorError
from webdyno.probes.scene import Scene
from webdyno.servers.ready import connect
from webdyno.servers.service import RunningService

T = TypeVar("T")
WITHIN_S = 0.25
"""An idle server answers within a millisecond; one whose workers are all taken not at all."""
LARGEST_RESPONSE_BYTES = 1 << 18
FASTCGI_BEGIN, FASTCGI_PARAMS, FASTCGI_STDIN, FASTCGI_STDOUT = 1, 4, 5, 6
FASTCGI_HEADER = struct.Struct(">BBHHBx")
"""Version, type, request, bytes of content, bytes of padding (FastCGI specification, 3.3)."""
FASTCGI_RESPONDER = struct.pack(">HB5x", 1, 0)
"""The body of a request's beginning: role 1, close the connection afterwards."""
COUNTS_WITHIN_S = 5.0
MOST_STATEMENTS = 10
"""That are kept of a slot, of the most frequent and of those that took longest."""
MOST_TABLES = 5
WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE")


@dataclass(frozen=True)
class OwnCounts:
    """A server's own counts; None where this kind of server doesn't say."""

    requests: int | None = None
    connections: int | None = None
    dropped: int | None = None
    hits: int | None = None
    misses: int | None = None
    busy: int | None = None
    workers: int | None = None
    most_busy: int | None = None
    most_waiting: int | None = None


def parse_nginx(text: str) -> OwnCounts:
    """Read stub_status: ngx_http_stub_status_module."""
    match = re.search(r"accepts handled requests\s+(\d+)\s+(\d+)\s+(\d+)\s", text)
    if match is None:
        raise ValueError("this is no stub_status")
    accepted, handled, requests = map(int, match.groups())
    return OwnCounts(requests=requests, connections=accepted, dropped=accepted - handled)


def parse_apache(text: str) -> OwnCounts:
    """Read mod_status's page for machines; it counts requests if ExtendedStatus is on."""
    said = _named_numbers(text, r"^([A-Za-z]+(?: [A-Za-z]+)*): (\d+)\s*$")
    others_busy = said["BusyWorkers"] - 1  # one is busy with the question
    return OwnCounts(
        requests=said.get("Total Accesses"),
        busy=max(others_busy, 0),
        workers=said["BusyWorkers"] + said["IdleWorkers"],
    )


class _PhpFpm(BaseModel, strict=True):
    requests: int = Field(alias="accepted conn")
    active: int = Field(alias="active processes")
    processes: int = Field(alias="total processes")
    most_active: int = Field(alias="max active processes")
    most_waiting: int = Field(alias="max listen queue")
    queue_limit: int = Field(alias="listen queue len")


def parse_php_fpm(text: str) -> OwnCounts:
    """Read php-fpm's status page as JSON; its `accepted conn` counts requests.

    Its listen queue is known for TCP only; without a limit of the queue it isn't.
    """
    said = _PhpFpm.model_validate_json(text)
    return OwnCounts(
        requests=said.requests,
        busy=max(said.active - 1, 0),  # one is busy with the question
        workers=said.processes,
        most_busy=said.most_active,
        most_waiting=said.most_waiting if said.queue_limit else None,
    )


def parse_memcached(text: str) -> OwnCounts:
    """Read the response to memcached's `stats`; its requests are those for keys."""
    said = _named_numbers(text, r"^STAT (\w+) (\d+)\s*$")
    return OwnCounts(
        requests=said["cmd_get"] + said["cmd_set"],
        connections=said["total_connections"],
        dropped=said.get("rejected_connections"),
        hits=said["get_hits"],
        misses=said["get_misses"],
    )


def parse_redis(text: str) -> OwnCounts:
    """Read the response to `INFO stats` of Redis; its requests are commands."""
    said = _named_numbers(text, r"^(\w+):(\d+)\s*$")
    return OwnCounts(
        requests=said["total_commands_processed"],
        connections=said["total_connections_received"],
        dropped=said["rejected_connections"],
        hits=said["keyspace_hits"],
        misses=said["keyspace_misses"],
    )


PARSERS: dict[StatusKind, Callable[[str], OwnCounts]] = {
    "nginx": parse_nginx,
    "apache": parse_apache,
    "php-fpm": parse_php_fpm,
    "memcached": parse_memcached,
    "redis": parse_redis,
}
"""They raise ValueError or KeyError when a text isn't what it should be."""


def _named_numbers(text: str, line: str) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(line, text, re.MULTILINE | re.ASCII)}


ASKING_COUNTS = {
    "nginx": OwnCounts(requests=1, connections=1),
    "apache": OwnCounts(requests=1),
    "php-fpm": OwnCounts(requests=1),
    "memcached": OwnCounts(connections=1),
    "redis": OwnCounts(requests=1, connections=1),
}
"""What one question adds to a server's own counts, by kind."""


def status_counts(scene: Scene) -> Generator[None, None, dict[str, ServerStatus]]:
    """Report what those of the loaded variant's services counted that do, by role."""
    before = _by_role(scene, read_status)
    yield
    after = _by_role(scene, read_status)
    return {role: after[role].since(then) for role, then in before.items() if role in after}


@dataclass(frozen=True)
class StatusReading:
    """What a server has counted since its start."""

    counts: OwnCounts
    own: OwnCounts
    """What one question adds to them."""

    def since(self, earlier: "StatusReading") -> ServerStatus:
        """Return what it counted since an earlier reading, without our own question."""
        now, then, own = self.counts, earlier.counts, self.own
        return ServerStatus(
            requests=_difference(now.requests, then.requests, own.requests),
            connections=_difference(now.connections, then.connections, own.connections),
            dropped=_difference(now.dropped, then.dropped),
            hits=_difference(now.hits, then.hits),
            misses=_difference(now.misses, then.misses),
            busy=now.busy,
            workers=now.workers,
            most_busy=now.most_busy,
            most_waiting=now.most_waiting,
        )


def read_status(service: RunningService) -> StatusReading | None:
    """Ask a service for its counts; None when it has none to say, or doesn't report them."""
    source = service.role.service.status
    if source is None:
        return None
    filled = service.filled.texts["status"]
    with suppress(OSError, ValueError, LookupError, NoResponse, GeneratorError):
        text = ASK[source.kind](service, source).decode("utf-8", "replace")
        counts, own = PARSERS[source.kind](text), ASKING_COUNTS[source.kind]
        # php-fpm takes a connection that is kept for a request, from the moment it waits for one.
        workers = max(counts.workers or 0, counts.most_busy or 0)
        if not filled["workers"] or workers <= int(filled["workers"]):
            # With a password a question is two commands.
            return StatusReading(counts, replace(own, requests=2) if filled["password"] else own)
    return None


def _difference(now: int | None, then: int | None, own: int | None = None) -> int | None:
    """How far a counter has moved; None when it isn't known or started again."""
    if now is None or then is None or now < then:
        return None
    return max(now - then - (own or 0), 0)


def _http(service: RunningService, source: StatusSource) -> bytes:
    path, address = service.filled.texts["status"]["path"], service.address
    if source.socket is None and address.protocol != "http":
        load, entry = Load(protocol=address.protocol), service.testbed.servers_entry()
        with Conversation(address.url, load, entry) as conversation:
            return conversation.ask("GET", path, {}, within_s=WITHIN_S).body
    response = _exchange(service, source, f"GET {path} HTTP/1.0\r\nHost: status\r\n\r\n".encode())
    head, _, body = response.partition(b"\r\n\r\n")
    if head.split(None, 2)[1] != b"200":
        raise ValueError("no status page")
    return body


def _fastcgi(service: RunningService, source: StatusSource) -> bytes:
    path = service.filled.texts["status"]["path"]
    parameters = {"SCRIPT_NAME": path, "SCRIPT_FILENAME": path}
    parameters |= {"REQUEST_METHOD": "GET", "QUERY_STRING": "json"}
    pairs = b"".join(
        bytes([len(name), len(value)]) + name.encode() + value.encode()
        for name, value in parameters.items()
    )
    request = b"".join(
        FASTCGI_HEADER.pack(1, kind, 1, len(content), 0) + content
        for kind, content in (
            (FASTCGI_BEGIN, FASTCGI_RESPONDER),
            (FASTCGI_PARAMS, pairs),
            (FASTCGI_PARAMS, b""),
            (FASTCGI_STDIN, b""),
        )
    )
    return fastcgi_output(_exchange(service, source, request)).partition(b"\r\n\r\n")[2]


def fastcgi_output(response: bytes) -> bytes:
    """Return what a FastCGI application printed; ValueError when its response is cut off."""
    output, place = b"", 0
    while place < len(response):
        if place + FASTCGI_HEADER.size > len(response):
            raise ValueError("a record's header is cut off")
        _, kind, _, length, padding = FASTCGI_HEADER.unpack_from(response, place)
        begin = place + FASTCGI_HEADER.size
        place = begin + length + padding
        if place > len(response):
            raise ValueError("a record is cut off")
        if kind == FASTCGI_STDOUT:
            output += response[begin : begin + length]
    return output


def _redis(service: RunningService, source: StatusSource) -> bytes:
    if not (password := service.filled.texts["status"]["password"]):
        return _exchange(service, source, b"INFO stats\r\n", redis_complete)
    asked = f"AUTH {password}\r\nINFO stats\r\n".encode()
    return _exchange(
        service, source, asked, lambda said: redis_complete(said.removeprefix(b"+OK\r\n"))
    )


def redis_complete(response: bytes) -> bool:
    """Whether a bulk string of Redis's protocol, or an error, has arrived as a whole."""
    head, line_end, rest = response.partition(b"\r\n")
    if not line_end or head[:1] != b"$":
        return bool(line_end)
    return len(rest) >= int(head[1:]) + len(line_end)


ASK: dict[StatusKind, Callable[[RunningService, StatusSource], bytes]] = {
    "nginx": _http,
    "apache": _http,
    "php-fpm": _fastcgi,
    "memcached": lambda service, source: _exchange(service, source, b"stats\r\nquit\r\n"),
    "redis": _redis,
}


def _exchange(
    service: RunningService,
    source: StatusSource,
    request: bytes,
    complete: Callable[[bytes], bool] = lambda _: False,
) -> bytes:
    """Send a request; return all until it is complete or the server closes."""
    deadline, response, address = time.monotonic() + WITHIN_S, b"", service.address
    if source.socket:
        address = replace(address, socket=service.home / source.socket)
    with closing(connect(address, service.testbed.servers_socket, WITHIN_S)) as connection:
        connection.sendall(request)
        while not complete(response):
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            if not (part := connection.recv(65_536)):
                break
            response += part
            if len(response) > LARGEST_RESPONSE_BYTES:
                raise ValueError("no status is as long as that")
    return response


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


def database_use(scene: Scene) -> Generator[None, None, dict[str, DatabaseUse]]:
    """Report what the databases of the loaded variant did for their clients, by role."""
    before = _by_role(scene, read_counts)
    yield
    after = _by_role(scene, read_counts)
    return {role: used_between(then, after[role]) for role, then in before.items() if role in after}


def _by_role(scene: Scene, read: Callable[[RunningService], T | None]) -> dict[str, T]:
    readings = {role: read(service) for role, service in scene.stack.services().items()}
    return {role: reading for role, reading in readings.items() if reading is not None}


def read_counts(service: RunningService) -> DatabaseCounts | None:
    """Ask a database; None where it can't say."""
    if not (words := service.filled.words("counts")):
        return None
    with suppress(OperationError, ValueError, TypeError):
        done = run_program(
            words,
            within_s=COUNTS_WITHIN_S,
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
    """Return what was done between two readings."""
    before = {statement.text: statement for statement in then.statements}
    done = [use for now_ in now.statements if (use := _since(now_, before.get(now_.text))).calls]
    times = [use.time_s for use in done if use.time_s is not None]
    written = [use.rows for use in done if use.rows is not None and use.text.startswith(WRITES)]
    frequent = sorted(done, key=lambda use: -use.calls)[:MOST_STATEMENTS]
    slow = sorted(done, key=lambda use: -(use.time_s or 0.0))[:MOST_STATEMENTS]
    more = {name: size - then.tables.get(name, 0) for name, size in now.tables.items()}
    grown = sorted((item for item in more.items() if item[1] > 0), key=lambda item: -item[1])
    return DatabaseUse(
        calls=sum(use.calls for use in done),
        time_s=sum(times) if times else None,
        rows_written=sum(written) if all(use.rows is not None for use in done) else None,
        statements=frequent + [use for use in slow if use not in frequent],
        bytes_before=sum(then.tables.values()),
        bytes_after=sum(now.tables.values()),
        grown=dict(grown[:MOST_TABLES]),
    )


def _since(now: StatementCounts, then: StatementCounts | None) -> StatementUse:
    """Counts that stepped back began again."""
    if then is None or now.calls < then.calls:
        then = StatementCounts(now.text, 0, 0, 0.0)
    return StatementUse(
        text=" ".join(now.text.split()),
        calls=now.calls - then.calls,
        rows=None if now.rows is None else max(now.rows - (then.rows or 0), 0),
        time_s=None if now.time_s is None else max(now.time_s - (then.time_s or 0), 0.0),
    )
