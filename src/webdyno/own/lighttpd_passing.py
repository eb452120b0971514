"""Whom a configuration of lighttpd passes requests on to, or asks for each request."""

import re
from collections.abc import Iterable, Iterator

from webdyno.own.lighttpd_text import Statement

PASSING = re.compile(r'"host"|\.hostname|memcache-hosts|include_shell')
"""In lines that are likely to name hosts."""

_HOST = re.compile(r'^\s*"host"\s*=> (.*?),?$')
_BACKENDS = re.compile(r"[\w-]+\.server|vhostdb\.\w+")
_NAMED = re.compile(r"[\w.-]+\.hostname|[\w.-]+\.memcache-hosts")
_TEXT = re.compile(r'"([^"]*)"')


def passed_on(statements: Iterable[Statement]) -> Iterator[str]:
    """Give the hosts; a Unix socket and the host of the server itself are none."""
    for statement in statements:
        if _BACKENDS.fullmatch(statement.key):
            for line in statement.lines:
                if (found := _HOST.match(line)) and not found[1].startswith('"/'):
                    yield _one(found[1])
        elif _NAMED.fullmatch(statement.key):
            yield from map(_without_port, _TEXT.findall(statement.value))


def _one(value: str) -> str:
    """Give what a value says; all of it where a variable is a part of it."""
    found = _TEXT.fullmatch(value)
    return found[1] if found else value


def _without_port(host: str) -> str:
    """Give the host of `ldap://host:389` and `host:11211`."""
    return re.sub(r"^\w+://|:\d+$", "", host)
