"""Whom a configuration of Caddy, as JSON, passes requests on to."""

import re
from collections.abc import Iterator
from typing import Any

PASSING = re.compile(
    r"^\s*(?:reverse_proxy|php_fastcgi|forward_auth|to|dynamic|name|"
    r"forward_proxy_url|network_proxy|import)\b"
)
"""What lines are likely to begin with that name hosts."""

_DIALLED = re.compile(r"(?:(?:tcp|udp)[46]?/)?(\[[^\]]*\]|[^:]*)(?::[^:]*)?")
_URL = re.compile(r"[a-z0-9+]+://(?:[^@/]*@)?(\[[^\]]*\]|[^:/]+)")


def passed_on(node: Any) -> Iterator[str]:  # noqa: ANN401 (JSON)
    """Give the hosts, as they are written where only a request tells; sockets are none."""
    if isinstance(node, dict):
        yield from _of(node)
    for inner in node.values() if isinstance(node, dict) else node:
        if isinstance(inner, dict | list):
            yield from passed_on(inner)


def _of(node: dict[str, Any]) -> Iterator[str]:
    dialled = node.get("dial", [])
    for address in [dialled] if isinstance(dialled, str) else dialled:
        if host := _dialled(address):
            yield host
    if source := node.get("dynamic_upstreams"):
        yield from _dynamic(source)
    for key in ("forward_proxy_url", "url"):
        if (url := node.get(key)) and isinstance(url, str) and (found := _URL.match(url)):
            yield found[1]


def _dialled(address: str) -> str:
    """Give the host of an address; empty where that is this machine's own."""
    if address.startswith(("unix/", "unix+", "fd/", "fdgram/")):
        return ""
    found = _DIALLED.fullmatch(address)
    return found[1] if found else address


def _dynamic(source: dict[str, Any]) -> Iterator[str]:
    """Give whom a name server is asked about, time and again."""
    if source.get("source") == "a":
        yield str(source.get("name", ""))
    elif source.get("source") == "srv":
        yield f"SRV {source.get('name', '')}"
    for inner in source.get("sources", []):
        yield from _dynamic(inner)
