"""Whom a configuration of Caddy, as JSON, passes requests on to."""

import re
from collections.abc import Iterator
from typing import Any

from webdyno.systems.conf.backends import BackendAddress, Backends

_DIALED = re.compile(r"(?:(?:tcp|udp)[46]?/)?(\[[^\]]*\]|[^:]*)(?::[^:]*)?")
_URL = re.compile(r"[a-z0-9+]+://(?:[^@/]*@)?(\[[^\]]*\]|[^:/]+)")
_UNIX = re.compile(r"unix\+?\w*/(/[^|]*)(?:\|\d+)?")
_TCP = re.compile(r"(?:tcp[46]?/)?(\[[^\]]*\]|[^:/{}]+)(?::([0-9]{1,5}))?")


def passed_on(node: Any) -> Iterator[str]:  # noqa: ANN401 (JSON)
    """Give the hosts, as they are written where only a request says; sockets are none."""
    if isinstance(node, dict):
        yield from _of(node)
    for inner in node.values() if isinstance(node, dict) else node:
        if isinstance(inner, dict | list):
            yield from passed_on(inner)


def _of(node: dict[str, Any]) -> Iterator[str]:
    dialed = node.get("dial", [])
    for address in [dialed] if isinstance(dialed, str) else dialed:
        if host := _dialed(address):
            yield host
    if source := node.get("dynamic_upstreams"):
        yield from _dynamic(source)
    for key in ("forward_proxy_url", "url"):
        if (url := node.get(key)) and isinstance(url, str) and (match := _URL.match(url)):
            yield match[1]


def _dialed(address: str) -> str:
    """Give the host of an address; empty where that is this machine's own."""
    if address.startswith(("unix/", "unix+", "fd/", "fdgram/")):
        return ""
    match = _DIALED.fullmatch(address)
    return match[1] if match else address


def _dynamic(source: dict[str, Any]) -> Iterator[str]:
    """Give whom a name server is asked about, time and again."""
    if source.get("source") == "a":
        yield str(source.get("name", ""))
    elif source.get("source") == "srv":
        yield f"SRV {source.get('name', '')}"
    for inner in source.get("sources", []):
        yield from _dynamic(inner)


def dial_backends(backends: Backends, node: Any) -> None:  # noqa: ANN401 (JSON)
    """Have handlers that pass requests on name backends in the place of hosts."""
    if isinstance(node, dict) and node.get("handler") == "reverse_proxy":
        _exchange(backends, node)
    for inner in node.values() if isinstance(node, dict) else node:
        if isinstance(inner, dict | list):
            dial_backends(backends, inner)


def _exchange(backends: Backends, handler: dict[str, Any]) -> None:
    for upstream in handler.get("upstreams", []):
        if address := _instead(backends, str(upstream.get("dial", ""))):
            upstream["dial"] = f"unix/{address.socket}" if address.socket else address.text
    source = handler.get("dynamic_upstreams", {})
    if source.get("source") == "a":
        service = f"{source.get('name', '')}:{source.get('port') or 80}"
        if address := _instead(backends, service):
            del handler["dynamic_upstreams"]
            handler["upstreams"] = [{"dial": address.text}]


def _instead(backends: Backends, dialed: str) -> BackendAddress | None:
    if socket := _UNIX.fullmatch(dialed):
        return backends.of_socket(socket[1])
    match = _TCP.fullmatch(dialed)
    return backends.of_host(match[1], int(match[2]) if match[2] else None) if match else None
