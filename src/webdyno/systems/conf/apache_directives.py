"""What becomes of single directives of Apache: what they write, run, contact and pass on to."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from webdyno.core.service import Line
from webdyno.systems.conf.apache_lines import ApacheLines
from webdyno.systems.conf.backends import PORTS, Backends
from webdyno.systems.conf.passing import PassedOn
from webdyno.systems.conf.relocation import FOLDER, NO_OTHER_USER, why_no_ciphers

EXCLUDED = {
    **dict.fromkeys(("user", "group", "suexecusergroup", "assignuserid"), NO_OTHER_USER),
    "chrootdir": "root alone may change it",
    "pidfile": "it is in the run's folder",
    **dict.fromkeys(("scoreboardfile", "coredumpdirectory"), "it isn't needed"),
    "defaultruntimedir": "it is the run's folder",
    "scriptsock": "it is in the run's folder",
    "mutex": "its files are in the run's folder",
    "sslpassphrasedialog": "nobody is there to ask for a passphrase",
    **dict.fromkeys(("sslusestapling", "mdomain", "mdstapling"), "it would ask other machines"),
    "heartbeataddress": "it would send to other machines",
}
FILES = {
    **dict.fromkeys(("customlog", "transferlog", "globallog"), "access.log"),
    "forensiclog": "forensic.log",
    "scriptlog": "script.log",
    "davlockdb": "dav-lock",
    "mdstoredir": "md",
    "wsgisocketprefix": "wsgi",
}
"""What is written, and the name that it has in the run's folder."""
FOLDERS = {"cacheroot": "cache"}
"""Folders that have to be there."""
CACHES = {
    *("sslsessioncache", "sslstaplingcache", "authncachesocache", "cachesocache"),
    "authdigestshmemfile",
}
PATH_AT = {
    **dict.fromkeys(("alias", "scriptalias"), 1),
    **dict.fromkeys(("documentroot", "authuserfile", "authgroupfile", "sslcertificatefile"), 0),
    **dict.fromkeys(("sslcertificatekeyfile", "sslcertificatechainfile"), 0),
    "sslcacertificatefile": 0,
}
"""Directives with paths that may be relative, and which of their words that is."""
CIPHERS = {"sslciphersuite", "sslproxyciphersuite"}
TYPES, MAGIC = Path("/etc/mime.types"), Path("/etc/apache2/magic")

_WORD = re.compile(r'("(?:[^"\\]|\\.)*"|\S+)\s*')
_SECTION = re.compile(r'(\s*<Directory\s+)"?([^"~>]+?)"?(\s*>\s*)$', re.IGNORECASE)
TARGETS = {"proxypass", "proxypassmatch", "balancermember", "proxyremote", "proxyremotematch"}
"""Directives with URLs that are asked."""
REMOTES = {"proxyremote", "proxyremotematch"}
"""Those that name whom they are asked through, last."""
HANDLERS = {"sethandler", "addhandler", "rewriterule"}
"""Directives that may name one after `proxy:`."""
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
_LINE = re.compile(r"\s*([A-Za-z]\w*)\s+(.*?)\s*$")
_QUOTED_OR_PLAIN = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/\s]*)", re.IGNORECASE)
_URLS = re.compile(r"://([^/\"]*)")
_BY_SOCKET = re.compile(r"unix:", re.IGNORECASE)
_BY_HANDLER = re.compile(r"\bproxy:([^\s\",\]]+)", re.IGNORECASE)
_CACHE = re.compile(r"(?:memcache|redis):([^\s\"]+)", re.IGNORECASE)
_PROXY_FLAG = re.compile(r"[\[,]\s*(?:P|proxy)\s*[,\]]", re.IGNORECASE)
_OPTION = re.compile(r"[A-Za-z]\w*=")
LEADING = TARGETS | HANDLERS | {"proxypassreverse", "proxypassreversecookiedomain"}
"""Directives that name what requests are passed on to, or where its answers lead."""
_PROXY_SECTION = re.compile(r"\s*<Proxy\s", re.IGNORECASE)
_TARGET = re.compile(
    r"(?:unix:(?P<socket>/[^|\"\s]+)\|)?(?P<scheme>[a-z][a-z0-9+.-]*)://"
    r"(?P<host>\[[^\]]*\]|[\w.-]*)(?::(?P<port>[0-9]{1,5}))?",
    re.IGNORECASE,
)


def first_word(words: str) -> tuple[str, str]:
    """Split the first word off, which may be in quotes."""
    match = _WORD.match(words)
    return (match[1], words[match.end() :]) if match else (words, "")


def why_excluded(lower: str, words: str) -> str | None:
    """Say why a directive is excluded; None where it stays."""
    if lower in CIPHERS and (why := why_no_ciphers(words)):
        return why
    return None if words.lower() == "off" else EXCLUDED.get(lower)


def program_of(lower: str, words: str) -> str | None:
    """Name the program that a directive has the server run, or the code that it loads."""
    if lower == "rewritemap" and (match := re.search(r"\bprg:(\S.*)", words)):
        return match[1].strip('"')
    if lower == "extfilterdefine" and (match := re.search(r'\bcmd=("[^"]*"|\S+)', words)):
        return match[1].strip('"')
    if lower == "loadfile":
        return first_word(words)[0].strip('"')
    return None


def moved_directive(
    lower: str, name: str, words: str, reader: ApacheLines, folders: list[str]
) -> str | None:
    """Give a directive with what it names moved; None where nothing of it changes."""
    if lower == "errorlog":
        return f"{name} /dev/stderr"
    if lower in FILES:
        _, rest = first_word(words)
        return f'{name} "{FOLDER}/{FILES[lower]}" {rest}'.rstrip()
    if lower in FOLDERS:
        folders.append(FOLDERS[lower])
        return f'{name} "{FOLDER}/{FOLDERS[lower]}"'
    if lower in CACHES:
        return f"{name} " + re.sub(r"(:|^)/[^\"(\s]+", rf"\1{FOLDER}/{lower}", words)
    if lower == "typesconfig":
        return _with_file(name, words, reader.existing(words.strip('"')) or TYPES)
    if lower == "mimemagicfile":
        file = reader.existing(words.strip('"')) or (MAGIC if MAGIC.is_file() else Path(os.devnull))
        return _with_file(name, words, file)
    if lower in PATH_AT:
        return f"{name} {_with_path(words, PATH_AT[lower], reader)}"
    return None


def _with_file(name: str, words: str, file: Path) -> str | None:
    return None if str(file) == words.strip('"') else f'{name} "{file}"'


def moved_section(text: str, reader: ApacheLines) -> str:
    """Give a `<Directory>` with a whole path."""
    match = _SECTION.match(text)
    if not match or match[2].startswith("/") or "*" in match[2]:
        return text
    return f'{match[1]}"{_whole(match[2], reader)}"{match[3]}'


def refuse_missing_includes(lines: list[Line], reader: ApacheLines) -> None:
    """Raise UserError for an include of what isn't there, in what is measured."""
    for line in lines:
        if line.origin in reader.missing:
            raise reader.missing[line.origin]


def _with_path(words: str, index: int, reader: ApacheLines) -> str:
    """Give words whose path begins at the root."""
    found_words = list(_WORD.finditer(words))
    if len(found_words) <= index:
        return words
    path = found_words[index][1].strip('"')
    if not path or path.startswith(("/", "$", "@")):
        return words
    start, end = found_words[index].span(1)
    return f'{words[:start]}"{_whole(path, reader)}"{words[end:]}'


def _whole(path: str, reader: ApacheLines) -> Path:
    """Give what a relative path means: what is there, else next to where webdyno is called."""
    begin = reader.request.folder or reader.request.file.parent
    return reader.existing(path) or begin / path


def passed_on(line: Line) -> Iterator[PassedOn]:
    """Give whom a line names; as it is written where only a request says."""
    if match := _LINE.match(line.text):
        for host in _hosts(match[1].lower(), match[2]):
            yield PassedOn(host, line.origin)


def _hosts(name: str, words: str) -> Iterator[str]:
    if name in TARGETS:
        yield from _of_target(_plain(words)[-1:] if name in REMOTES else _plain(words))
    elif name in HANDLERS:
        yield from _of_handler(name, words)
    elif name in ASKED:
        yield from (_host(word) for urls in _URLS.findall(words) for word in urls.split())
    elif name in REMOTE_CACHES:
        yield from (_host(part) for urls in _CACHE.findall(words) for part in urls.split(","))
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
    """Give the hosts of URLs; of a balancer and a socket none, and else what says of a host."""
    if any(word == "!" or _BY_SOCKET.match(word) for word in words):
        return
    targets = [(word[1].lower(), _host(word[2])) for word in map(_URL.match, words) if word]
    yield from (host for scheme, host in targets if scheme != "balancer")
    if not targets:
        yield from [word for word in words if not _OPTION.match(word)][-1:]


def _plain(words: str) -> list[str]:
    return [word.strip('"') for word in _QUOTED_OR_PLAIN.findall(words)]


def _host(address: str) -> str:
    """Give the host of `user@host:port`, without its port."""
    host = address if address.startswith("@") else address.rpartition("@")[2]
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::.*)?", host)
    return match[1] if match else host


def line_to_backends(backends: Backends, line: Line) -> Line:
    """Give a line with the addresses of backends in the place of hosts that they answer for."""
    parts = _LINE.match(line.text)
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
