"""Whom lines of Apache pass requests on to, or ask for each request."""

import re
from collections.abc import Iterator, Sequence

from webdyno.model.origin import Line
from webdyno.own.names import PassedOn

TARGETS = {"proxypass", "proxypassmatch", "balancermember", "proxyremote", "proxyremotematch"}
"""Directives with URLs that are asked."""
REMOTES = {"proxyremote", "proxyremotematch"}
"""Those that name whom they are asked through, last."""
HANDLERS = {"sethandler", "addhandler", "rewriterule"}
"""Directives that may name one after `proxy:`."""
ASKED = {"authldapurl", "authnzfcgidefineprovider"}
"""Directives with a URL of whom requests are asked about."""
CACHES = {"cachesocache", "authncachesocache", "sslsessioncache", "sslstaplingcache"}
IN_OTHER_FILES = {"jkworkersfile", "proxyexpressdbmfile"}
"""Directives whose file, which isn't read here, names hosts."""
AMONG_WORDS = {
    "dbdparams": re.compile(r"\b(?:host|hostaddr|server)=([^\s,;\"]+)", re.IGNORECASE),
    "fastcgiexternalserver": re.compile(r"-host\s+\"?([^\s:\"]+)", re.IGNORECASE),
    "jkworkerproperty": re.compile(r"\.host=(\S+)"),
}
"""Directives that name hosts in ways of their own."""

_LINE = re.compile(r"\s*([A-Za-z]\w*)\s+(.*?)\s*$")
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/\s]*)", re.IGNORECASE)
_URLS = re.compile(r"://([^/\"]*)")
_BY_SOCKET = re.compile(r"unix:", re.IGNORECASE)
_BY_HANDLER = re.compile(r"\bproxy:([^\s\",\]]+)", re.IGNORECASE)
_CACHE = re.compile(r"(?:memcache|redis):([^\s\"]+)", re.IGNORECASE)
_PROXY_FLAG = re.compile(r"[\[,]\s*(?:P|proxy)\s*[,\]]", re.IGNORECASE)
_OPTION = re.compile(r"[A-Za-z]\w*=")


def passed_on(line: Line) -> Iterator[PassedOn]:
    """Give whom a line names; as it is written where only a request tells."""
    if found := _LINE.match(line.text):
        for host in _hosts(found[1].lower(), found[2]):
            yield PassedOn(host, line.origin)


def _hosts(name: str, words: str) -> Iterator[str]:
    if name in TARGETS:
        yield from _of_target(_plain(words)[-1:] if name in REMOTES else _plain(words))
    elif name in HANDLERS:
        yield from _of_handler(name, words)
    elif name in ASKED:
        yield from (_host(it) for at in _URLS.findall(words) for it in at.split())
    elif name in CACHES:
        yield from (_host(it) for at in _CACHE.findall(words) for it in at.split(","))
    elif name in IN_OTHER_FILES:
        yield f"what {words} says"
    elif name in AMONG_WORDS:
        yield from AMONG_WORDS[name].findall(words)


def _of_handler(name: str, words: str) -> Iterator[str]:
    """Give the host that a handler or a rewritten URL leads to."""
    if name == "rewriterule" and _PROXY_FLAG.search(words):
        yield from _of_target(_plain(words)[1:2])
    for target in _BY_HANDLER.findall(words):
        yield from _of_target([target])


def _of_target(words: Sequence[str]) -> Iterator[str]:
    """Give the hosts of URLs; of a balancer and a socket none, and else what tells of a host."""
    if any(it == "!" or _BY_SOCKET.match(it) for it in words):
        return
    found = [(it[1].lower(), _host(it[2])) for it in map(_URL.match, words) if it]
    yield from (host for scheme, host in found if scheme != "balancer")
    if not found:
        yield from [it for it in words if not _OPTION.match(it)][-1:]


def _plain(words: str) -> list[str]:
    return [it.strip('"') for it in _WORD.findall(words)]


def _host(at: str) -> str:
    """Give the host of `user@host:port`, without its port."""
    host = at if at.startswith("@") else at.rpartition("@")[2]
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::.*)?", host)
    return found[1] if found else host
