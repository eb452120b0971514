"""Moves a configuration of lighttpd, statement by statement."""

import re
from collections.abc import Iterable, Iterator, Mapping

from webdyno.systems.conf.backends import BackendAddress, Backends
from webdyno.systems.conf.lighttpd_read import Statement, statements
from webdyno.systems.conf.passing import placed
from webdyno.systems.conf.relocation import (
    FOLDER,
    HOST,
    HTTP,
    KEY,
    KEY_AND_CERTIFICATE,
    NO_OTHER_USER,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    is_like,
    port_of,
    why_no_ciphers,
    with_marks_shown,
)

AGAIN = {"server.bind": f'"{HOST}"', "server.port": PORT}
SYSTEM_LOG = (
    *("server.errorlog-use-syslog", "server.syslog-facility", "accesslog.use-syslog"),
    "accesslog.syslog-level",
)
EXCLUDED = {
    **dict.fromkeys(("server.username", "server.groupname"), NO_OTHER_USER),
    "server.chroot": "root alone may change it",
    "server.pid-file": "it isn't needed",
    **dict.fromkeys(SYSTEM_LOG, "log lines stay in the run's folder"),
    **dict.fromkeys(("rrdtool.binary", "rrdtool.db-name"), "it would write elsewhere"),
}
WRITTEN = {
    "accesslog.filename": f'"{FOLDER}/access.log"',
    "server.errorlog": '"/dev/stderr"',
    "server.breakagelog": '"/dev/stderr"',
    "server.upload-dirs": f'( "{FOLDER}/temp" )',
    "deflate.cache-dir": f'"{FOLDER}/temp"',
    "compress.cache-dir": f'"{FOLDER}/temp"',
}
"""What is written, and where."""
NEEDED = ("server.errorlog", "server.upload-dirs")
"""Of these, what lighttpd would else write to its own folders."""
OURS_INSTEAD = {"ssl.pemfile": KEY_AND_CERTIFICATE, "ssl.privkey": KEY}
OF_ANOTHER_PAIR = {"ssl.ca-file", "ssl.stapling-file"}
WITH_PROGRAMS = {"fastcgi.server", "scgi.server"}
_SOCKET = re.compile(r'^((?:else )?\$SERVER\["socket"\] == )"([^"]*)"( \{)$')
_HTTP_HOST = re.compile(r'(?:else )?\$HTTP\["host"\] (==|=~|=\^|=\$) "(.*)" \{$')
_BIN_PATH = re.compile(r'^\s*"bin-path"\s*=> "(.*)",$')
_SOCKET_PATH = re.compile(r'^(\s*"socket"\s*=> )"(.*)",$')
_PLACE = re.compile(r'^(?P<margin>\s*)"(?P<key>host|port|socket)"\s*=> "?(?P<value>[^"]*?)"?,?$')
PASSING = re.compile(r'"host"|\.hostname|memcache-hosts|include_shell')
"""In lines that are likely to name hosts."""
_HOST = re.compile(r'^\s*"host"\s*=> (.*?),?$')
_BACKENDS = re.compile(r"[\w-]+\.server|vhostdb\.\w+")
_NAMED = re.compile(r"[\w.-]+\.hostname|[\w.-]+\.memcache-hosts")
_TEXT = re.compile(r'"([^"]*)"')


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration, includes and all; raise UserError where it isn't right."""
    changes: list[str] = []
    mover = _Mover(request, statements(request, changes), changes)
    lines = [line for statement in mover.statements for line in mover.moved(statement)]
    config = "{{ server.folder }}/lighttpd.conf"
    return RelocatedConfig(
        name="lighttpd.conf",
        text="\n".join([*mover.head(), *lines, ""]),
        changes=changes,
        start=["{{ needs.binary }}", "-D", "-f", config],
        check=["{{ needs.binary }}", "-tt", "-f", config],
        folders=["temp"],
        passed_on=placed(
            passed_on(mover.statements), request.files.texts, request.environment, PASSING
        ),
    )


class _Mover:
    """Changes statement by statement, and notes what it changes."""

    def __init__(
        self, request: RelocationRequest, parsed: list[Statement], changes: list[str]
    ) -> None:
        self.statements = parsed
        self._request = request
        self._changes = changes
        self._sockets: dict[str, str] = {}
        """Where each socket of a condition is now."""
        self._programs = 0
        keys = [statement for statement in parsed if statement.key in OURS_INSTEAD]
        self._own_pair = not all(request.may_read(statement.text) for statement in keys)
        self._global = dict(_global(parsed))
        self._measured = self._measured_socket()

    def head(self) -> Iterator[str]:
        again = AGAIN | {key: WRITTEN[key] for key in NEEDED if key not in self._global}
        system_log = self._global.get("accesslog.use-syslog")
        if system_log and system_log.text == "enable" and "accesslog.filename" not in self._global:
            again["accesslog.filename"] = WRITTEN["accesslog.filename"]
        if self._request.root and "server.document-root" not in self._global:
            again["server.document-root"] = f'"{self._request.root}"'
        for key, value in again.items():
            before = self._global.get(key)
            was = f", not {before.value}" if before else ""
            self._changes.append(f"{key} = {with_marks_shown(value)}{was}")
            yield f"{key} = {value}"

    def moved(self, statement: Statement) -> list[str]:
        key, value = statement.key, statement.value
        if not key:
            return [self._condition(statement.lines[0])]
        if key in AGAIN:
            return []
        if key in EXCLUDED:
            self._changes.append(f"excluded: {key} = {value} ({EXCLUDED[key]})")
            return []
        if key == "ssl.cipher-list" and (why := why_no_ciphers(statement.text)):
            self._changes.append(f"excluded: {key} = {value} ({why})")
            return []
        if self._own_pair and key in OF_ANOTHER_PAIR:
            self._changes.append(f"excluded: {key} = {value} (it is of another certificate)")
            return []
        if self._own_pair and key in OURS_INSTEAD:
            now = f'{key} = "{OURS_INSTEAD[key]}"'
            self._changes.append(self._request.unreadable(now, statement.text))
            return [now]
        if _BACKENDS.fullmatch(key):
            statement.lines = list(_passed_to(self._request.backends, statement.lines))
        if key in WITH_PROGRAMS:
            return self._with_programs(statement)
        new = WRITTEN.get(key) or (
            self._root(statement) if key == "server.document-root" else value
        )
        if new == value:
            return statement.lines
        self._changes.append(f"{key} = {with_marks_shown(new)}, not {value}")
        return [f"{key} = {new}"]

    def _root(self, statement: Statement) -> str:
        if self._request.root:
            return f'"{self._request.root}"'
        begin = self._request.folder or self._request.file.parent
        return f'"{begin / statement.text}"' if statement.value.count('"') == 2 else statement.value

    def _with_programs(self, statement: Statement) -> list[str]:
        """Move the sockets of programs that lighttpd starts: each variant has its own."""
        lines: list[str] = []
        for group in _groups(statement.lines):
            started = [match[1] for line in group if (match := _BIN_PATH.match(line))]
            for line in group:
                match = _SOCKET_PATH.match(line)
                if match and started:
                    self._programs += 1
                    line = f'{match[1]}"{FOLDER}/program-{self._programs}.sock",'
                    self._changes.append(f"{with_marks_shown(line).strip()} not {match[2]}")
                lines.append(line)
            self._changes += [f"runs {program}, as bin-path says" for program in started]
        return lines

    def _condition(self, line: str) -> str:
        match = _SOCKET.match(line.strip())
        if match is None:
            return line
        address = self._new_address(match[2])
        new = f'{match[1]}"{address}"{match[3]}'
        self._changes.append(f'{with_marks_shown(new).strip(" {")}, not "{match[2]}"')
        return new

    def _new_address(self, address: str) -> str:
        if address == self._measured:
            return f"{HOST}:{PORT}"
        name = f"{FOLDER}/{port_of(address) or 'socket'}-{len(self._sockets) + 1}.sock"
        return self._sockets.setdefault(address, name)

    def _note_site(self) -> None:
        host, sites = self._request.host, list(_sites(self.statements))
        known = any(
            site[2] == host if site[1] == "==" else site[1] != "=~" or is_like(site[2], host)
            for site in sites
        )
        if sites:
            outside = "the one outside of conditions on the host"
            measured = (host if known else "") if host else outside
            self._request.note_site(measured, [outside, *(site[2] for site in sites)])

    def _measured_socket(self) -> str | None:
        """Choose what is measured: a socket of a condition, or the server's own (None)."""
        named, own_port = self._global.get("ssl.engine"), self._global.get("server.port")
        is_secure = bool(named and named.text == "enable")
        own = int(own_port.value) if own_port and own_port.value.isdecimal() else HTTP
        ports = [own] if is_secure == self._request.is_secure else []
        sockets = {
            port: address
            for address, secure in reversed(list(_sockets(self.statements)))
            if secure == self._request.is_secure and (port := port_of(address))
        }
        measured = self._request.measured([*ports, *reversed(sockets)])
        self._note_site()
        return None if measured in ports else sockets[measured]


def _sites(parsed: list[Statement]) -> Iterator[re.Match[str]]:
    """Give the conditions on the host: how one compares, and with what."""
    return filter(None, (_HTTP_HOST.match(statement.condition) for statement in parsed))


def _global(parsed: list[Statement]) -> Iterator[tuple[str, Statement]]:
    depth = 0
    for statement in parsed:
        depth += bool(statement.condition) - statement.ends
        if statement.key and not depth:
            yield statement.key, statement


def _sockets(parsed: list[Statement]) -> Iterator[tuple[str, bool]]:
    """Give the address of each condition on the socket, and whether TLS is spoken there."""
    for index, statement in enumerate(parsed):
        if not (socket := _SOCKET.match(statement.condition)):
            continue
        depth, secure = 0, False
        for inner in parsed[index:]:
            depth += bool(inner.condition) - inner.ends
            secure |= inner.key == "ssl.engine" and inner.text == "enable"
            if not depth:
                break
        yield socket[2], secure


def _groups(lines: list[str]) -> Iterator[list[str]]:
    """Split the lines of `fastcgi.server` after each of its servers."""
    group: list[str] = []
    for line in lines:
        group.append(line)
        if line.strip() == "),":
            yield group
            group = []
    yield group


def _passed_to(backends: Backends, lines: list[str]) -> Iterator[str]:
    """Give the lines of servers, those that a backend answers for with its address."""
    for group in _groups(lines):
        places = {match["key"]: match for line in group if (match := _PLACE.match(line))}
        place = places.get("socket") or places.get("host")
        started_here = any(map(_BIN_PATH.match, group))
        address = _backend(backends, places) if place and not started_here else None
        if place is None or address is None:
            yield from group
            continue
        ours = [f'"host" => "{address.host}",', f'"port" => {address.port},']
        if address.socket:
            ours = [f'"socket" => "{address.socket}",']
        for line in group:
            if line == place.string:
                yield from (place["margin"] + our for our in ours)
            elif not _PLACE.match(line):
                yield line


def _backend(backends: Backends, places: Mapping[str, re.Match[str]]) -> BackendAddress | None:
    place = (places.get("socket") or places["host"])["value"]
    if place.startswith("/"):
        return backends.of_socket(place)
    port = places["port"]["value"] if "port" in places else ""
    return backends.of_host(place, int(port) if port.isdecimal() else None)


def passed_on(statements: Iterable[Statement]) -> Iterator[str]:
    """Give the hosts; a Unix socket and the host of the server itself are none."""
    for statement in statements:
        if _BACKENDS.fullmatch(statement.key):
            for line in statement.lines:
                if (match := _HOST.match(line)) and not match[1].startswith('"/'):
                    yield _one(match[1])
        elif _NAMED.fullmatch(statement.key):
            yield from map(_without_port, _TEXT.findall(statement.value))


def _one(value: str) -> str:
    """Give what a value says; all of it where a variable is a part of it."""
    match = _TEXT.fullmatch(value)
    return match[1] if match else value


def _without_port(host: str) -> str:
    """Give the host of `ldap://host:389` and `host:11211`."""
    return re.sub(r"^\w+://|:\d+$", "", host)
