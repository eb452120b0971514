"""Hosts that a configuration of Apache httpd passes requests on to, or asks."""

import re
from collections.abc import Iterator, Sequence

from webdyno.core.service import Line
from webdyno.systems.conf.passing import PORTS, Backends, PassedOn

TARGETS = {"proxypass", "proxypassmatch", "balancermember", "proxyremote", "proxyremotematch"}
"""Directives with URLs that are asked."""
REMOTES = {"proxyremote", "proxyremotematch"}
"""Those that name whom they are asked through, last."""
MACROS = {"use", "define"}
HANDLERS = {*("sethandler", "addhandler", "rewriterule", "forcetype", "addtype"), *MACROS}
"""Directives that may name one after `proxy:`; a type is a handler where there is no other."""
ASKED = {"authldapurl", "authnzfcgidefineprovider"}
"""Directives with a URL of whom requests are asked about."""
REMOTE_CACHES = {"cachesocache", "authncachesocache", "sslsessioncache", "sslstaplingcache"}
IN_OTHER_FILES = {"jkworkersfile", "proxyexpressdbmfile"}
"""Directives whose file, which isn't read here, names hosts."""
AMONG_WORDS = {
    "dbdparams": re.compile(r"\b(?:host|hostaddr|server)=([^\s,;\"]+)", re.IGNORECASE),
    "fastcgiexternalserver": re.compile(r"-host\s+\"?([^\s:\"]+)", re.IGNORECASE),
    "jkworkerproperty": re.compile(r"\.host=(\S+)"),
}
"""Directives that name hosts in ways of their own."""
_PASSING_LINE = re.compile(r"\s*+([A-Za-z]\w*+)\s++(.*)$")
_QUOTED_OR_PLAIN = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:\\\s|\S)+""")
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/\s]*)", re.IGNORECASE)
_URLS = re.compile(r"://([^/\"]*)")
_BY_SOCKET = re.compile(r"unix:", re.IGNORECASE)
_BY_HANDLER = re.compile(r"\bproxy:([^\s\",\]]+)", re.IGNORECASE)
_UNKNOWN_YET = re.compile(r"(?!proxy:)\S*?[%$]", re.IGNORECASE)
"""A handler that only a request or a macro's use says: it may be `proxy:`."""
_HANDLER_FLAG = re.compile(
    r"[\[,]\s*(?:H|handler|T|type)\s*=\s*+([^,\]]{0,200}[%$][^,\]]*)", re.IGNORECASE
)
_CACHE = re.compile(r"(?:memcache|redis):([^\s\"]+)", re.IGNORECASE)
PROXY_FLAG = re.compile(r"[\[,]\s*(?:P|proxy)\s*[=,\]]", re.IGNORECASE)
_OPTION = re.compile(r"[A-Za-z]\w*=|(?:nocanon|interpolate|noquery)$", re.IGNORECASE)
LEADING = TARGETS | HANDLERS | {"proxypassreverse", "proxypassreversecookiedomain"}
"""Directives that name what requests are passed on to, or where its answers lead."""
_PROXY_SECTION = re.compile(r"\s*<Proxy\s", re.IGNORECASE)
_TARGET = re.compile(
    r"(?:unix:(?P<socket>/[^|\"\s]{1,200})\|)?(?P<scheme>[a-z][a-z0-9+.-]{0,20})://"
    r"(?P<host>\[[^\]]*\]|[\w.-]*)(?::(?P<port>[0-9]{1,5}))?",
    re.IGNORECASE,
)


def passed_on(line: Line) -> Iterator[PassedOn]:
    """Return the hosts in a line, as they are written where only a request says which."""
    if match := _PASSING_LINE.match(line.text):
        for host in _hosts(match[1].lower(), match[2]):
            yield PassedOn(host, line.origin)


def _hosts(name: str, words: str) -> Iterator[str]:
    if name in TARGETS:
        yield from _of_target(_plain(words)[-1:] if name in REMOTES else _plain(words))
    elif name in HANDLERS:
        if name == "rewriterule" and PROXY_FLAG.search(words):
            yield from _of_target(_plain(words)[1:2])
        for target in _BY_HANDLER.findall(words):
            yield from _of_target([target])
        handlers = _HANDLER_FLAG.findall(words) if name == "rewriterule" else _plain(words)[:1]
        if name not in MACROS:
            yield from filter(_UNKNOWN_YET.match, handlers)
    elif name in ASKED:
        yield from (_host(word) for urls in _URLS.findall(words) for word in urls.split())
    elif name in REMOTE_CACHES:
        yield from (_host(part) for urls in _CACHE.findall(words) for part in urls.split(","))
    elif name in IN_OTHER_FILES:
        yield f"what {words} says"
    elif name in AMONG_WORDS:
        yield from AMONG_WORDS[name].findall(words)


def _of_target(words: Sequence[str]) -> Iterator[str]:
    """Return the host that comes last, but for options; balancers and sockets have none."""
    for target in [word for word in words if not _OPTION.match(word)][-1:]:
        if target == "!" or _BY_SOCKET.match(target):
            continue
        url = _URL.match(target)
        if url is None:
            yield target
        elif url[1].lower() != "balancer":
            yield _host(url[2])


def _plain(words: str) -> list[str]:
    return [word.strip("\"'") for word in _QUOTED_OR_PLAIN.findall(words)]


def _host(address: str) -> str:
    """Return the host of `user@host:port`, without its port."""
    host = address if address.startswith("@") else address.rpartition("@")[2]
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::.*)?", host)
    return match[1] if match else host


def line_to_backends(backends: Backends, line: Line) -> Line:
    """Return a line with the addresses of backends in the place of hosts that they answer for."""
    parts = _PASSING_LINE.match(line.text)
    leads = (parts and parts[1].lower() in LEADING) or _PROXY_SECTION.match(line.text)
    if not leads:
        return line
    return line._replace(text=_TARGET.sub(lambda match: _instead(match, backends), line.text))


def _instead(match: re.Match[str], backends: Backends) -> str:
    scheme = match["scheme"].lower()
    if scheme == "balancer":
        return match[0]
    if match["socket"]:
        address = backends.of_socket(match["socket"])
    else:
        port = int(match["port"]) if match["port"] else PORTS.get(scheme)
        address = backends.of_host(match["host"], port)
    if address is None:
        return match[0]
    if address.socket:
        return f"unix:{address.socket}|{scheme}://localhost"
    return f"{scheme}://{address.text}"
