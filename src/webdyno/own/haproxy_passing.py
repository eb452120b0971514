"""Whom lines of HAProxy pass requests on to."""

import re
from collections.abc import Iterator

from webdyno.own.haproxy_lines import ConfigLine
from webdyno.own.names import PassedOn

ADDRESS_AT = {"server": 2, "dispatch": 1, "server-template": 3}
"""Which of a line's words is an address."""
THROUGH = "socks4"
"""Before the address of somebody who passes it on further."""

_LOCAL = re.compile(r"(?:(?:unix|uxst|uxdg|abnsz?|fd|sockpair)@|/)")
_KIND = re.compile(r"(?:ip|tcp|mptcp|quic)v?[46]?@")
_ADDRESS = re.compile(
    r"([A-Za-z0-9_.-]+|\*|\[[0-9A-Fa-f:.]+\]||[0-9A-Fa-f:]+?)(?::[+-]?[0-9]*)?", re.ASCII
)
_AS_CLIENTS_ASKED = {"", "*"}
"""Where clients connected to, which is this machine."""


def passed_on(line: ConfigLine) -> Iterator[PassedOn]:
    """Give whom a line names; as it is written where only a request tells."""
    words = line.values
    if "set-dst" in words[1:]:
        yield PassedOn(" ".join(words[words.index("set-dst") :]), line.origin)
    at = ADDRESS_AT.get(line.name)
    if at is None:
        return
    addresses = words[at : at + 1]
    if THROUGH in words:
        addresses += words[words.index(THROUGH) + 1 :][:1]
    for address in addresses:
        if not _LOCAL.match(address) and (host := _host(address)) not in _AS_CLIENTS_ASKED:
            yield PassedOn(host, line.origin)


def _host(address: str) -> str:
    found = _ADDRESS.fullmatch(_KIND.sub("", address, count=1))
    return found[1] if found else address
