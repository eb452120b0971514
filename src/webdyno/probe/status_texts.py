"""Reads the texts in which servers tell what they have counted since their start."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from webdyno.model.service import StatusKind


@dataclass(frozen=True)
class OwnCounts:
    """A server's own counts; None where this kind of server doesn't tell."""

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
    found = re.search(r"accepts handled requests\s+(\d+)\s+(\d+)\s+(\d+)\s", text)
    if found is None:
        raise ValueError("this is no stub_status")
    accepted, handled, requests = map(int, found.groups())
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


def parse_php_fpm(text: str) -> OwnCounts:
    """Read php-fpm's status page as JSON; its `accepted conn` counts requests.

    Its listen queue is known for TCP only; without a limit of the queue it isn't.
    """
    said = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError("this is no status of php-fpm")  # noqa: TRY004 (the text is wrong)
    names = ("accepted conn", "active processes", "total processes", "max active processes")
    requests, active, total, most_active = (_whole(said[name]) for name in names)
    return OwnCounts(
        requests=requests,
        busy=max(active - 1, 0),  # one is busy with the question
        workers=total,
        most_busy=most_active,
        most_waiting=_whole(said["max listen queue"]) if _whole(said["listen queue len"]) else None,
    )


def parse_memcached(text: str) -> OwnCounts:
    """Read the answer to memcached's `stats`; its requests are those for keys, read or written."""
    said = _named_numbers(text, r"^STAT (\w+) (\d+)\s*$")
    return OwnCounts(
        requests=said["cmd_get"] + said["cmd_set"],
        connections=said["total_connections"],
        dropped=said.get("rejected_connections"),
        hits=said["get_hits"],
        misses=said["get_misses"],
    )


def parse_redis(text: str) -> OwnCounts:
    """Read the answer to `INFO stats` of Redis; its requests are commands."""
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


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError("a count is a whole number")  # noqa: TRY004 (the text is wrong)
    return value
