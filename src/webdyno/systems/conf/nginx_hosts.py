"""Which server of a configuration of nginx is measured."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from webdyno.systems.conf.nginx_read import Directive, of_name
from webdyno.systems.conf.relocation import HTTP, RelocationRequest, is_like

SERVING = {
    *("root", "alias", "try_files", "proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass"),
    *("grpc_pass", "memcached_pass", "content_by_lua_block", "content_by_lua_file", "js_content"),
}
"""Directives by which a server has pages."""
DEFAULT = ("default_server", "default")
REFUSING = 400
NOBODY = {"_", "", '""', "localhost"}
"""Names that no site has."""


@dataclass(frozen=True)
class Listener:
    """One `listen` of a server."""

    port: int | None
    """None for a Unix socket."""
    words: tuple[str, ...]

    @property
    def is_secure(self) -> bool:
        return "ssl" in self.words

    @property
    def is_default(self) -> bool:
        """Whether its server answers who asks for no host that is known."""
        return any(word in self.words for word in DEFAULT)


@dataclass(frozen=True)
class MeasuredServers:
    """What is measured."""

    port: int
    servers: list[Directive]
    """Those that answer there."""
    default: Directive
    """The one of them that answers who asks for no known host."""


def choose_servers(request: RelocationRequest, directives: Sequence[Directive]) -> MeasuredServers:
    """Choose; raise UserError where nothing listens that could be asked."""
    https = of_name("http", directives)
    servers = [server for http in https for server in of_name("server", http.inner)]
    servers = [server for server in servers if server.block is not None]
    by_port: dict[int, list[Directive]] = {}
    for server in servers:
        for listener in fitting(request, server):
            candidates = by_port.setdefault(listener.port, []) if listener.port is not None else []
            if server not in candidates:
                candidates.append(server)
    unlikely = {
        port: why
        for port, candidates in by_port.items()
        if all(map(why_server_unlikely, candidates))
        and (why := why_server_unlikely(_default(request, candidates, port)))
    }
    with_host = [
        port for port, candidates in by_port.items() if _has_host(request.host, candidates)
    ]
    port = request.choose_port(list(by_port), unlikely, with_host)
    candidates = by_port[port]
    default = _default(request, candidates, port)
    _note_site(request, default, candidates)
    if not request.host and (why := why_server_unlikely(default)):
        other = next((server for server in candidates if not why_server_unlikely(server)), None)
        if other is not None:
            request.notes.append(
                f"{_name(other)} answers, whatever host is requested, and not the default, "
                f"{_name(default)}: {why}; --host NAME asks for another"
            )
            default = other
    return MeasuredServers(port, candidates, default)


def _note_site(
    request: RelocationRequest, default: Directive, servers: Sequence[Directive]
) -> None:
    names = [name for server in servers for name in _names(server)]
    called = _has_host(request.host, servers)
    if request.host:
        request.note_site(request.host if called else "", names)
    elif not why_server_unlikely(default):
        request.note_site(next(iter(_names(default)), "") or _name(default), names)


def _has_host(host: str, servers: Sequence[Directive]) -> bool:
    return bool(host) and any(
        _is_name(name, host.lower()) for server in servers for name in _names(server)
    )


def _is_name(name: str, host: str) -> bool:
    """Whether a name of nginx means a host: `a.ex`, `*.ex`, `.ex`, `www.*` or `~^w`."""
    if name.startswith("~"):
        return is_like(name[1:], host)
    low = name.lower()
    if low.startswith("*."):
        return host.endswith(low[1:])
    if low.startswith("."):
        return host == low[1:] or host.endswith(low)
    return host.startswith(low[:-1]) if low.endswith(".*") else host == low


def fitting(request: RelocationRequest, server: Directive) -> list[Listener]:
    """Return where a server listens for what clients speak."""
    return [
        listener
        for listener in listeners(server)
        if listener.is_secure == request.is_secure and "quic" not in listener.words
    ]


def listeners(server: Directive) -> list[Listener]:
    """Return where a server listens; on port 80 unless it says so. `ssl on` holds for all of it."""
    listens = [listen.args for listen in of_name("listen", server.inner) if listen.args]
    is_on = any(ssl.args[:1] == ["on"] for ssl in of_name("ssl", server.inner))
    return [
        Listener(_port(address), (*words, *(["ssl"] if is_on else [])))
        for address, *words in listens or [[str(HTTP)]]
    ]


def why_server_unlikely(server: Directive) -> str:
    """Return a reason against measuring a server; empty if there is none."""
    block = server.inner
    roots = [location for location in of_name("location", block) if location.args == ["/"]]
    for directive in (*block, *(roots[0].inner if roots else [])):
        first = (directive.args or [""])[0]
        if directive.name == "return" and re.match(r"30[1278]$|https?://|\$scheme", first):
            return "it only redirects"
        if directive.name == "return" and first.isdecimal() and int(first) >= REFUSING:
            return f"it refuses requests (return {first})"
        if directive.name == "ssl_reject_handshake" and first == "on":
            return "it refuses TLS"
    if _has_pages(block):
        return ""
    if _has_status(block):
        return "its page is the server's status"
    rewrites = of_name("rewrite", block)
    if any(rewrite.args[-1:] in (["permanent"], ["redirect"]) for rewrite in rewrites):
        return "it only redirects"
    return ""


def _has_status(block: Sequence[Directive]) -> bool:
    return any(each.name.endswith("stub_status") or _has_status(each.inner) for each in block)


def _has_pages(block: Sequence[Directive]) -> bool:
    """Whether there is a page, in blocks that say no status."""
    names = {directive.name for directive in block}
    if "stub_status" in names:
        return False
    return bool(names & SERVING) or any(_has_pages(directive.inner) for directive in block)


def _default(request: RelocationRequest, servers: Sequence[Directive], port: int) -> Directive:
    for server in servers:
        if any(each.port == port and each.is_default for each in fitting(request, server)):
            return server
    return servers[0]


def _names(server: Directive) -> list[str]:
    directives = of_name("server_name", server.inner)
    return [name for directive in directives for name in directive.args if name not in NOBODY]


def _name(server: Directive) -> str:
    if names := _names(server):
        return f"server {names[0]}"
    return f"the server of line {server.origin.line if server.origin else 0}"


def _port(address: str) -> int | None:
    """Return the port of an address as nginx writes it: `80`, `*:80`, `[::]:80`, `localhost`."""
    if address.startswith("unix:"):
        return None
    last = address.rpartition(":")[2] if not address.endswith("]") else ""
    match = re.match(r"([0-9]{1,5})(?:-[0-9]+)?$", last)
    return int(match[1]) if match else HTTP
