"""Which server of a configuration of nginx is measured, and whom it passes requests on to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webdyno.own.nginx_read import Directive
from webdyno.own.passing import PassedOn
from webdyno.own.relocation import HTTP, RelocationRequest

SERVING = {
    *("root", "alias", "try_files", "proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass"),
    *("grpc_pass", "memcached_pass", "content_by_lua_block", "content_by_lua_file", "js_content"),
}
"""Directives by which a server has pages."""
DEFAULT = ("default_server", "default")
REFUSING = 400
TABLES = {"map", "geo", "split_clients"}
"""Blocks that give a variable one of several values."""
AFTER_THE_HOST = {"uri", "request_uri", "document_uri", "is_args", "args", "query_string"}
MOST_VALUES = 1_000
DEEPEST = 5
"""Variables within the values of variables."""
_PASSING = re.compile(r"\w+_pass|endpoint")
"""The latter is where `otel_exporter` tells of each request."""
_SCHEME = re.compile(r"(?:[a-z0-9]+|\$\w+)://")
_HOST = re.compile(r"\[[^\]]*\]|[^:/\s]+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


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
        return any(it in self.words for it in DEFAULT)


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
    servers = list(_servers(directives))
    by_port: dict[int, list[Directive]] = {}
    for server in servers:
        for it in fitting(request, server):
            there = by_port.setdefault(it.port, []) if it.port is not None else []
            if not any(server is each for each in there):
                there.append(server)
    unlikely = {
        port: why
        for port, there in by_port.items()
        if all(map(why_server_unlikely, there))
        and (why := why_server_unlikely(_default(request, there, port)))
    }
    port = request.measured(list(by_port), unlikely)
    there = by_port[port]
    default = _default(request, there, port)
    if not request.host and (why := why_server_unlikely(default)):
        other = next((it for it in there if not why_server_unlikely(it)), None)
        if other is not None:
            request.notes.append(
                f"{_name(other)} answers, whatever host is requested, and not the default, "
                f"{_name(default)}: {why}; --host NAME asks for another"
            )
            default = other
    return MeasuredServers(port, there, default)


def fitting(request: RelocationRequest, server: Directive) -> list[Listener]:
    """Give where a server listens for what clients speak."""
    return [
        it
        for it in listeners(server)
        if it.is_secure == request.is_secure and "quic" not in it.words
    ]


def listeners(server: Directive) -> list[Listener]:
    """Give where a server listens; on port 80 unless it says so. `ssl on` holds for all of it."""
    found = [it["args"] for it in server["block"] if it["directive"] == "listen" and it["args"]]
    is_on = any(it["directive"] == "ssl" and it["args"][:1] == ["on"] for it in server["block"])
    return [
        Listener(_port(address), (*words, *(["ssl"] if is_on else [])))
        for address, *words in found or [[str(HTTP)]]
    ]


def why_server_unlikely(server: Directive) -> str:
    """Say what speaks against a server as the one that is measured; empty if nothing does."""
    block = server["block"]
    root = next((it for it in block if it["directive"] == "location" and it["args"] == ["/"]), None)
    for where in (block, root["block"] if root and "block" in root else []):
        for it in where:
            name, first = it["directive"], (it["args"] or [""])[0]
            if name == "return" and (why := _returned(first)):
                return why
            if name == "ssl_reject_handshake" and first == "on":
                return "it refuses TLS"
    if _has_status(block) and not _has_pages(block):
        return "its page is the server's status"
    if not _has_pages(block) and any(
        it["directive"] == "rewrite" and it["args"][-1:] in (["permanent"], ["redirect"])
        for it in block
    ):
        return "it only redirects"
    return ""


def _returned(what: str) -> str:
    if re.match(r"30[1278]$|https?://|\$scheme", what):
        return "it only redirects"
    if what.isdecimal() and int(what) >= REFUSING:
        return f"it refuses requests (return {what})"
    return ""


def _has_status(block: Sequence[Directive]) -> bool:
    return any(
        it["directive"].endswith("stub_status") or _has_status(it.get("block", [])) for it in block
    )


def _has_pages(block: Sequence[Directive]) -> bool:
    """Whether there is a page, in blocks that tell no status."""
    here = {it["directive"] for it in block}
    if "stub_status" in here:
        return False
    return bool(here & SERVING) or any(_has_pages(it.get("block", [])) for it in block)


def _default(request: RelocationRequest, servers: Sequence[Directive], port: int) -> Directive:
    said = (
        it
        for it in servers
        if any(each.port == port and each.is_default for each in fitting(request, it))
    )
    return next(said, servers[0])


def _name(server: Directive) -> str:
    names = [
        word for it in server["block"] if it["directive"] == "server_name" for word in it["args"]
    ]
    named = [it for it in names if it not in {"_", ""}]
    origin = server.get("origin")
    return f"server {named[0]}" if named else f"the server of line {origin.line if origin else 0}"


def _servers(directives: Sequence[Directive]) -> Iterator[Directive]:
    for http in directives:
        if http["directive"] == "http" and "block" in http:
            yield from (it for it in http["block"] if it["directive"] == "server" and "block" in it)


def _port(address: str) -> int | None:
    """Give the port of an address as nginx writes it: `80`, `*:80`, `[::]:80`, `localhost`."""
    if address.startswith("unix:"):
        return None
    last = address.rpartition(":")[2] if not address.endswith("]") else ""
    found = re.match(r"([0-9]{1,5})(?:-[0-9]+)?$", last)
    return int(found[1]) if found else HTTP


def looked_up(directives: Sequence[Directive]) -> list[PassedOn]:
    """Give what nginx looks up when it starts, whether or not it passes requests there."""
    groups = _groups(directives)
    members = [it for group in groups.values() for it in group if "resolve" not in it["args"]]
    targets = [it for it in _targets(directives) if "$" not in it["args"][0]]
    return list(_hosts(_in_order(directives, [*targets, *members]), groups, {}))


def passed_on(directives: Sequence[Directive]) -> list[PassedOn]:
    """Give all places where requests are passed on.

    Where a variable names the host it is one of the values that the configuration gives it; else it
    stands as it is written.
    """
    groups, values = _groups(directives), _values(directives)
    targets = list(_targets(directives))
    named = {host for it in targets for host in _named(it["args"][0], values)}
    is_open = any("$" in host for host in named)
    members = [it for name, group in groups.items() if is_open or name in named for it in group]
    return list(_hosts(_in_order(directives, [*targets, *members]), groups, values))


def _in_order(all_of_it: Sequence[Directive], some: Sequence[Directive]) -> list[Directive]:
    chosen = set(map(id, some))
    return [it for it in _everything(all_of_it) if id(it) in chosen]


def _hosts(
    places: Sequence[Directive],
    groups: Mapping[str, Sequence[Directive]],
    values: Mapping[str, Sequence[str]],
) -> Iterator[PassedOn]:
    for it in places:
        for host in _named(it["args"][0], values):
            if it["directive"] == "server" or host not in groups:
                yield PassedOn(host, it.get("origin"))


def _named(target: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Give the hosts that a target may name: none for a Unix socket."""
    for text in _expanded(target, values):
        found = _HOST.match(text, scheme.end() if (scheme := _SCHEME.match(text)) else 0)
        if found and found[0] != "unix":
            yield found[0]


def _expanded(text: str, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Give all that a text may come to be; a variable stays that only a request has."""
    texts = [text]
    for _ in range(DEEPEST):
        texts = [new for it in texts for new in _once(it, values)]
        if len(texts) > MOST_VALUES:
            return [text]
    return list(dict.fromkeys(texts))


def _once(text: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for found in _VARIABLE.finditer(text):
        name = found[1] or found[2]
        for value in ["/"] if name in AFTER_THE_HOST else values.get(name, []):
            yield f"{text[: found.start()]}{value}{text[found.end() :]}"
        if name in AFTER_THE_HOST or name in values:
            return
    yield text


def _values(directives: Sequence[Directive]) -> dict[str, list[str]]:
    """Give what a configuration itself has variables be."""
    found: dict[str, list[str]] = {}
    for it in _everything(directives):
        name, words = it["directive"], it["args"]
        if name == "set" and len(words) == 2:
            found.setdefault(words[0].lstrip("$"), []).append(words[1])
        elif name in TABLES and words:
            given = [entry["args"][-1] for entry in it.get("block", []) if entry["args"]]
            found.setdefault(words[-1].lstrip("$"), []).extend(given)
    return {name: list(dict.fromkeys(given)) for name, given in found.items()}


def _groups(directives: Sequence[Directive]) -> dict[str, list[Directive]]:
    """Give the members of each `upstream`."""
    return {
        it["args"][0]: [each for each in it["block"] if _is_member(each)]
        for it in _everything(directives)
        if it["directive"] == "upstream" and it["args"]
    }


def _is_member(it: Directive) -> bool:
    return it["directive"] == "server" and "block" not in it and bool(it["args"])


def _targets(directives: Sequence[Directive]) -> Iterator[Directive]:
    for it in _everything(directives):
        if _PASSING.fullmatch(it["directive"]) and it["args"]:
            yield it


def _everything(directives: Sequence[Directive]) -> Iterator[Directive]:
    for it in directives:
        yield it
        yield from _everything(it.get("block", []))
