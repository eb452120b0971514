"""Moves a configuration of lighttpd, which prints all of it, includes and variables filled in."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.service import Origin
from webdyno.core.text import SECRET
from webdyno.systems.conf.lighttpd_print import demand_known_lines
from webdyno.systems.conf.passing import Backends, find_places
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
    program_path,
    readable,
    run_reader,
    why_no_ciphers,
    with_marks_shown,
)

_CLOSES = re.compile(r"^(\s*)\}( # end of .*)?$")
_CONDITION = re.compile(r'^(\s*(?:else )?\$\w+\["[^"]*"\] \S+ )"(.*)" \{$')
_BLOCK_NUMBER = re.compile(r"^\s*# block \d+$")
_SETS = re.compile(r"^(\s*)([A-Za-z][\w.-]*)\s*=\s(.*)$")
_INCLUDE = re.compile(r'(?m)^([ \t]*include[ \t]+")(?!/)')
_FOLDER = re.compile(r'(?m)^([ \t]*var\.conf_dir[ \t]*=)[ \t]*"(/[^"\n]*)"')
_IN_FOLDER = re.compile(r'(?m)^[ \t]*include[ \t]+(?:var\.)?conf_dir[ \t]*\+[ \t]*"/([^"*?\n]+)"')
"""By the configuration that comes with lighttpd, which Red Hat's is made of."""
_INCLUDED = re.compile(r'[ \t]*include[ \t]+"([^"]+)"')
_SHELL = re.compile(r"[ \t]*include_shell[ \t]+(.*)")
_TIME = re.compile(r"(?m)^[\d-]+ [\d:]+: (?:\([\w.]+\) )?")
_GIVEN = {"var.CWD", "var.PID"}
"""Variables that lighttpd makes itself."""


@dataclass
class Statement:
    """A setting, or a line that begins or ends a block."""

    lines: list[str]
    key: str = ""
    """What is set; empty for the line of a block."""

    @property
    def value(self) -> str:
        """What it is set to, over all its lines."""
        match = _SETS.match(self.lines[0])
        return "\n".join([match[3] if match else self.lines[0], *self.lines[1:]])

    @property
    def text(self) -> str:
        return self.value.strip('"')

    @property
    def condition(self) -> str:
        """The condition of a block that begins here; empty where none does."""
        line = self.lines[0].strip()
        return line if line.endswith("{") and not self.key else ""

    @property
    def ends(self) -> bool:
        return not self.key and bool(_CLOSES.match(self.lines[0]))


def statements(request: RelocationRequest, changes: list[str]) -> list[Statement]:
    """Read the statements of a configuration; raise UserError, in lighttpd's words, if it is wrong.

    What `include_shell` names is run for that, as the user as whom the server runs.
    """
    shells = list(_shells(request, request.file))
    changes += [f"runs {command}, as include_shell says" for _, command in shells]
    runs = [f"{place}: include_shell {command}" for place, command in shells]
    text = request.files.text(request.file)
    secrets = [name for name, value in request.given.items() if SECRET.search(value)]
    marks = {name: f"@webdyno-{name}@" for name in secrets}
    ours = _with_includes_next_to(request, text, changes)
    whole = _INCLUDE.sub(rf"\g<1>{request.file.parent}/", ours)
    with readable(request, whole, differs=ours != text) as file:
        words: list[str | Path] = [program_path("lighttpd"), "-p", "-f", file]
        reader = run_reader(request, words, {**request.environment, **marks}, runs)
        complained = reader.complained.replace(str(file), str(request.file))
    if reader.code:
        lines = _TIME.sub("", complained).splitlines()
        complaints = [line for line in lines if "WARNING" not in line]
        raise UserError(f"lighttpd says: {'; '.join(complaints) or 'nothing'}")
    demand_known_lines(printed := reader.printed, request.file)
    for name, mark in marks.items():
        printed = printed.replace(mark, f'" + env.{name} + "')
    return list(_statements(printed.splitlines()))


def _with_includes_next_to(request: RelocationRequest, text: str, changes: list[str]) -> str:
    """Have the text of a folder that was copied include what is next to it."""
    folder = request.file.parent
    named = _FOLDER.search(text)
    if not named or any(Path(named[2], pattern).exists() for pattern in _IN_FOLDER.findall(text)):
        return text
    changes.append(f'{named[1].strip()} "{folder}", not "{named[2]}", where it includes nothing')
    return f"{text[: named.start(2)]}{folder}{text[named.end(2) :]}"


def _shells(
    request: RelocationRequest, file: Path, named: Origin | None = None, depth: int = 0
) -> Iterator[tuple[Origin | None, str]]:
    for line in request.files.lines(file, named, depth):
        if match := _SHELL.match(line.text):
            yield line.origin, match[1].strip()
        elif (match := _INCLUDED.match(line.text)) and line.origin:
            home = request.file.parent
            if not os.path.lexists(home / match[1]) and not glob.has_magic(match[1]):
                continue  # lighttpd says so
            for each in request.files.files_of_include(match[1], [home], line.origin):
                yield from _shells(request, each, line.origin, depth + 1)


def _statements(lines: list[str]) -> Iterator[Statement]:
    inner = iter(lines[1:-1])  # without `config {` and its end
    for line in inner:
        if not line.strip() or _BLOCK_NUMBER.match(line):
            continue
        if (match := _SETS.match(line)) is None:
            end = _CLOSES.match(line)
            yield Statement([f"{end[1]}}}" if end else _with_escaped_quotes(line)])
            continue
        whole = [line]
        if match[3] == "(":
            for more in inner:
                whole.append(more)
                if more == f"{match[1]})":
                    break
        if match[2] not in _GIVEN:
            yield Statement(whole, match[2].lower())


def _with_escaped_quotes(line: str) -> str:
    """Escape the quotes in a condition, which lighttpd prints as they are."""
    match = _CONDITION.match(line)
    if match is None:
        return line
    plain = match[2].replace('" + env.', "\0").replace(' + "', "\1")
    escaped = plain.replace('"', '\\"').replace("\0", '" + env.').replace("\1", ' + "')
    return f'{match[1]}"{escaped}" {{'


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
NEEDED = ("server.errorlog", "server.upload-dirs")
"""What lighttpd would else write to its own folders."""
OURS_INSTEAD = {"ssl.pemfile": KEY_AND_CERTIFICATE, "ssl.privkey": KEY}
OF_ANOTHER_PAIR = {"ssl.ca-file", "ssl.stapling-file"}
WITH_PROGRAMS = {"fastcgi.server", "scgi.server"}
_SOCKET = re.compile(r'^((?:else )?\$SERVER\["socket"\] == )"([^"]*)"( \{)$')
_HTTP_HOST = re.compile(r'(?:else )?\$HTTP\["host"\] (==|=~|=\^|=\$) "(.*)" \{$')
_BIN_PATH = re.compile(r'^\s*"bin-path"\s*=> "(.*)",$', re.IGNORECASE)
_SOCKET_PATH = re.compile(r'^(\s*"socket"\s*=> )"(.*)",$', re.IGNORECASE)
_PLACE = re.compile(r'(?i)(?P<margin>\s*)"(?P<key>host|port|socket)"\s*=> "?(?P<value>[^"]*?)"?,?$')
PASSING = re.compile(r'"host"|\.hostname|memcache-hosts|include_shell', re.IGNORECASE)
"""In lines that are likely to name hosts."""
_HOST = re.compile(r'^\s*"host"\s*=> (.*?),?$', re.IGNORECASE)
_BACKENDS = re.compile(r"[\w-]+\.server|vhostdb\.\w+")
_NAMED = re.compile(r"[\w.-]+\.hostname|[\w.-]+\.memcache-hosts")
_TEXT = re.compile(r'"([^"]*)"')


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration, includes and all; raise UserError where it isn't right."""
    changes: list[str] = []
    mover = _Mover(request, changes)
    lines = [line for statement in mover.statements for line in mover.lines_of(statement)]
    config = "{{ server.folder }}/lighttpd.conf"
    hosts = passed_on(mover.statements)
    return RelocatedConfig(
        name="lighttpd.conf",
        text="\n".join([*mover.head(), *lines, ""]),
        changes=changes,
        start=["{{ needs.binary }}", "-D", "-f", config],
        check=["{{ needs.binary }}", "-tt", "-f", config],
        folders=["temp"],
        passed_on=find_places(hosts, request.files.texts, request.environment, PASSING),
    )


class _Mover:
    def __init__(self, request: RelocationRequest, changes: list[str]) -> None:
        self.statements = parsed = statements(request, changes)
        self._request = request
        self._changes = changes
        self._sockets: dict[str, str] = {}
        """Where each socket of a condition is now."""
        self._programs = 0
        keys = [statement for statement in parsed if statement.key in OURS_INSTEAD]
        self._own_pair = not all(request.may_read(statement.text) for statement in keys)
        self._global = {
            statement.key: statement
            for statement, depth in _with_depth(parsed)
            if statement.key and not depth
        }
        self._measured = self._choose_socket()

    def head(self) -> Iterator[str]:
        again = AGAIN | {key: WRITTEN[key] for key in NEEDED if key not in self._global}
        system_log = self._global.get("accesslog.use-syslog")
        if system_log and system_log.text == "enable" and "accesslog.filename" not in self._global:
            again["accesslog.filename"] = WRITTEN["accesslog.filename"]
        if self._request.root and "server.document-root" not in self._global:
            again["server.document-root"] = f'"{self._request.root}"'
        for key, value in again.items():
            was = f", not {self._global[key].value}" if key in self._global else ""
            self._changes.append(f"{key} = {with_marks_shown(value)}{was}")
            yield f"{key} = {value}"

    def lines_of(self, statement: Statement) -> list[str]:
        key, value = statement.key, statement.value
        if not key:
            return [self._condition(statement.lines[0])]
        if key in AGAIN:
            return []
        if why := self._why_excluded(statement):
            self._changes.append(f"excluded: {key} = {value} ({why})")
            return []
        if self._own_pair and key in OURS_INSTEAD:
            now = f'{key} = "{OURS_INSTEAD[key]}"'
            self._changes.append(self._request.unreadable(now, statement.text))
            return [now]
        if _BACKENDS.fullmatch(key):
            statement.lines = list(_to_backends(self._request.backends, statement.lines))
        if key in WITH_PROGRAMS:
            return self._with_programs(statement)
        new = WRITTEN.get(key, value)
        if key == "server.document-root" and (self._request.root or value.count('"') == 2):
            begin = self._request.folder or self._request.file.parent
            new = f'"{self._request.root or begin / statement.text}"'
        if new == value:
            return statement.lines
        self._changes.append(f"{key} = {with_marks_shown(new)}, not {value}")
        return [f"{key} = {new}"]

    def _why_excluded(self, statement: Statement) -> str:
        if self._own_pair and statement.key in OF_ANOTHER_PAIR:
            return "it is of another certificate"
        if statement.key == "ssl.cipher-list":
            return why_no_ciphers(statement.text)
        return EXCLUDED.get(statement.key, "")

    def _with_programs(self, statement: Statement) -> list[str]:
        """Move the sockets of programs that lighttpd starts: each variant has its own."""
        lines: list[str] = []
        for group in _groups(statement.lines):
            programs = [match[1] for line in group if (match := _BIN_PATH.match(line))]
            for line in group:
                match = _SOCKET_PATH.match(line)
                if match and programs:
                    self._programs += 1
                    line = f'{match[1]}"{FOLDER}/program-{self._programs}.sock",'
                    self._changes.append(f"{with_marks_shown(line).strip()} not {match[2]}")
                lines.append(line)
            self._changes += [f"runs {program}, as bin-path says" for program in programs]
        return lines

    def _condition(self, line: str) -> str:
        if (match := _SOCKET.match(line.strip())) is None:
            return line
        address = f"{HOST}:{PORT}"
        if match[2] != self._measured:
            name = f"{FOLDER}/{port_of(match[2]) or 'socket'}-{len(self._sockets) + 1}.sock"
            address = self._sockets.setdefault(match[2], name)
        new = f'{match[1]}"{address}"{match[3]}'
        self._changes.append(f'{with_marks_shown(new).strip(" {")}, not "{match[2]}"')
        return new

    def _note_site(self) -> None:
        host = self._request.host
        conditions = (_HTTP_HOST.match(statement.condition) for statement in self.statements)
        if sites := list(filter(None, conditions)):
            known = any(
                site[2] == host if site[1] == "==" else site[1] != "=~" or is_like(site[2], host)
                for site in sites
            )
            outside = "the one outside of conditions on the host"
            measured = (host if known else "") if host else outside
            self._request.note_site(measured, [outside, *(site[2] for site in sites)])

    def _choose_socket(self) -> str | None:
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
        measured = self._request.choose_port([*ports, *reversed(sockets)])
        self._note_site()
        return None if measured in ports else sockets[measured]


def _with_depth(parsed: list[Statement]) -> Iterator[tuple[Statement, int]]:
    """Return each statement with the number of blocks that are open behind it."""
    depth = 0
    for statement in parsed:
        depth += bool(statement.condition) - statement.ends
        yield statement, depth


def _sockets(parsed: list[Statement]) -> Iterator[tuple[str, bool]]:
    """Return the address of each condition on the socket, and whether TLS is spoken there."""
    for index, statement in enumerate(parsed):
        if not (socket := _SOCKET.match(statement.condition)):
            continue
        secure = False
        for inner, depth in _with_depth(parsed[index:]):
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


def _to_backends(backends: Backends, lines: list[str]) -> Iterator[str]:
    """Write the lines of servers, those that a backend answers for with its address."""
    for group in _groups(lines):
        if any(map(_BIN_PATH.match, group)):  # lighttpd starts it
            yield from group
            continue
        places = {match["key"].lower(): match for line in group if (match := _PLACE.match(line))}
        place = places.get("socket") or places.get("host")
        address = None
        if place and place["value"].startswith("/"):
            address = backends.of_socket(place["value"])
        elif place:
            port = places["port"]["value"] if "port" in places else ""
            address = backends.of_host(place["value"], int(port) if port.isdecimal() else None)
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


def passed_on(statements: Iterable[Statement]) -> Iterator[str]:
    """Return the hosts; a Unix socket and the host of the server itself are none."""
    for statement in statements:
        if _BACKENDS.fullmatch(statement.key):
            for line in statement.lines:
                if (match := _HOST.match(line)) and not match[1].startswith('"/'):
                    text = _TEXT.fullmatch(match[1])  # else a variable is a part of it
                    yield text[1] if text else match[1]
        elif _NAMED.fullmatch(statement.key):
            for url in _TEXT.findall(statement.value):  # ldap://host:389 or host:11211
                yield re.sub(r"^\w+://|:\d+$", "", url)
