"""Moves a configuration of lighttpd: what it listens on, what it writes, whom it runs as."""

import re
from collections.abc import Iterator

from webdyno.own.lighttpd_passing import PASSING, passed_on
from webdyno.own.lighttpd_text import Statement, statements
from webdyno.own.moved import (
    FOLDER,
    HOST,
    HTTP,
    KEY,
    KEY_AND_CERTIFICATE,
    PORT,
    Moved,
    Wanted,
    shown,
    why_no_ciphers,
)
from webdyno.own.passing import placed

ANEW = {"server.bind": f'"{HOST}"', "server.port": PORT}
NO_SYSTEM_LOG = "log lines stay in the run's folder"
LEFT_OUT = {
    "server.username": "an ordinary user has no other",
    "server.groupname": "an ordinary user has no other",
    "server.chroot": "root alone may change it",
    "server.pid-file": "it isn't needed",
    "server.errorlog-use-syslog": NO_SYSTEM_LOG,
    "server.syslog-facility": NO_SYSTEM_LOG,
    "accesslog.use-syslog": NO_SYSTEM_LOG,
    "accesslog.syslog-level": NO_SYSTEM_LOG,
    "rrdtool.binary": "it would write elsewhere",
    "rrdtool.db-name": "it would write elsewhere",
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
_BIN_PATH = re.compile(r'^\s*"bin-path"\s*=> "(.*)",$')
_SOCKET_PATH = re.compile(r'^(\s*"socket"\s*=> )"(.*)",$')


def moved(wanted: Wanted) -> Moved:
    """Read and move a configuration, includes and all; raise Mistake where it isn't right."""
    changes: list[str] = []
    mover = _Mover(wanted, statements(wanted, changes), changes)
    lines = [line for statement in mover.statements for line in mover.moved(statement)]
    config = "{{ server.folder }}/lighttpd.conf"
    return Moved(
        name="lighttpd.conf",
        text="\n".join([*mover.head(), *lines, ""]),
        changes=changes,
        start=["{{ needs.binary }}", "-D", "-f", config],
        check=["{{ needs.binary }}", "-tt", "-f", config],
        folders=["temp"],
        passed_on=placed(passed_on(mover.statements), wanted, PASSING),
    )


class _Mover:
    """Changes statement by statement, and notes what it changes."""

    def __init__(self, wanted: Wanted, found: list[Statement], changes: list[str]) -> None:
        self.statements = found
        self._wanted = wanted
        self._changes = changes
        self._sockets: dict[str, str] = {}
        """Where each socket of a condition is now."""
        self._programs = 0
        keys = [it for it in found if it.key in OURS_INSTEAD]
        self._own_pair = not all(wanted.may_read(it.text) for it in keys)
        self._global = dict(_global(found))
        self._measured = self._measured_socket()

    def head(self) -> Iterator[str]:
        """Give what holds for the server as a whole."""
        anew = ANEW | {key: WRITTEN[key] for key in NEEDED if key not in self._global}
        system_log = self._global.get("accesslog.use-syslog")
        if system_log and system_log.text == "enable" and "accesslog.filename" not in self._global:
            anew["accesslog.filename"] = WRITTEN["accesslog.filename"]
        if self._wanted.root and "server.document-root" not in self._global:
            anew["server.document-root"] = f'"{self._wanted.root}"'
        for key, value in anew.items():
            before = self._global.get(key)
            was = f", not {before.value}" if before else ""
            self._changes.append(f"{key} = {shown(value)}{was}")
            yield f"{key} = {value}"

    def moved(self, statement: Statement) -> list[str]:
        """Give the lines that become of a statement."""
        key, value = statement.key, statement.value
        if not key:
            return [self._condition(statement.lines[0])]
        if key in ANEW:
            return []
        if key in LEFT_OUT:
            self._changes.append(f"left out: {key} = {value} ({LEFT_OUT[key]})")
            return []
        if key == "ssl.cipher-list" and (why := why_no_ciphers(statement.text)):
            self._changes.append(f"left out: {key} = {value} ({why})")
            return []
        if self._own_pair and key in OF_ANOTHER_PAIR:
            self._changes.append(f"left out: {key} = {value} (it is of another certificate)")
            return []
        if self._own_pair and key in OURS_INSTEAD:
            now = f'{key} = "{OURS_INSTEAD[key]}"'
            self._changes.append(self._wanted.unreadable(now, statement.text))
            return [now]
        if key in WITH_PROGRAMS:
            return self._with_programs(statement)
        new = WRITTEN.get(key) or (
            self._root(statement) if key == "server.document-root" else value
        )
        if new == value:
            return statement.lines
        self._changes.append(f"{key} = {shown(new)}, not {value}")
        return [f"{key} = {new}"]

    def _root(self, statement: Statement) -> str:
        if self._wanted.root:
            return f'"{self._wanted.root}"'
        begin = self._wanted.folder or self._wanted.file.parent
        return f'"{begin / statement.text}"' if statement.value.count('"') == 2 else statement.value

    def _with_programs(self, statement: Statement) -> list[str]:
        """Move the sockets of programs that lighttpd starts: each arm has its own."""
        lines: list[str] = []
        for group in _groups(statement.lines):
            started = [found[1] for line in group if (found := _BIN_PATH.match(line))]
            for line in group:
                found = _SOCKET_PATH.match(line)
                if found and started:
                    self._programs += 1
                    line = f'{found[1]}"{FOLDER}/program-{self._programs}.sock",'
                    self._changes.append(f"{shown(line).strip()} not {found[2]}")
                lines.append(line)
            self._changes += [f"runs {it}, as bin-path says" for it in started]
        return lines

    def _condition(self, line: str) -> str:
        found = _SOCKET.match(line.strip())
        if found is None:
            return line
        address = self._new_address(found[2])
        new = f'{found[1]}"{address}"{found[3]}'
        self._changes.append(f'{shown(new).strip(" {")}, not "{found[2]}"')
        return new

    def _new_address(self, address: str) -> str:
        if address == self._measured:
            return f"{HOST}:{PORT}"
        name = f"{FOLDER}/{_port(address) or 'socket'}-{len(self._sockets) + 1}.sock"
        return self._sockets.setdefault(address, name)

    def _measured_socket(self) -> str | None:
        """Choose what is measured: a socket of a condition, or the server's own (None)."""
        named, own_port = self._global.get("ssl.engine"), self._global.get("server.port")
        is_secure = bool(named and named.text == "enable")
        own = int(own_port.value) if own_port and own_port.value.isdecimal() else HTTP
        ports = [own] if is_secure == self._wanted.is_secure else []
        sockets = {
            _port(address): address
            for address, secure in reversed(list(_sockets(self.statements)))
            if secure == self._wanted.is_secure and _port(address)
        }
        port = self._wanted.measured([*ports, *reversed(sockets)])
        return None if port in ports else sockets[port]


def _global(found: list[Statement]) -> Iterator[tuple[str, Statement]]:
    depth = 0
    for statement in found:
        depth += bool(statement.condition) - statement.ends
        if statement.key and not depth:
            yield statement.key, statement


def _sockets(found: list[Statement]) -> Iterator[tuple[str, bool]]:
    """Give the address of each condition on the socket, and whether TLS is spoken there."""
    for at, statement in enumerate(found):
        if not (socket := _SOCKET.match(statement.condition)):
            continue
        depth, secure = 0, False
        for inner in found[at:]:
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


def _port(address: str) -> int:
    """Give the port of `:443`, `0.0.0.0:443` or `[::]:443`; 0 where there is none."""
    last = address.rpartition(":")[2]
    return int(last) if last.isascii() and last.isdecimal() and len(last) <= 5 else 0
