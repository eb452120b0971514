"""Moves a configuration of HAProxy: sections of lines, of which it rewrites a few."""

import re
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.service import Line
from webdyno.systems.conf.haproxy_read import (
    LISTENING,
    ConfigLine,
    ConfigSection,
    Word,
    choose_bind,
    sections,
)
from webdyno.systems.conf.passing import BackendAddress, Backends, PassedOn
from webdyno.systems.conf.relocation import (
    HOST,
    KEY_AND_CERTIFICATE,
    NO_OTHER_USER,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    why_no_ciphers,
    with_marks_shown,
)

NOT_HERE = {
    **dict.fromkeys(("user", "group", "uid", "gid"), NO_OTHER_USER),
    "chroot": "root alone may change it",
    **dict.fromkeys(("daemon", "master-worker"), "it stays in the foreground"),
    **dict.fromkeys(("pidfile", "unix-bind"), "it isn't needed"),
    "cpu-map": "the testbed says which CPUs servers have",
    "ulimit-n": "the testbed says how many files may be open",
}
"""What of `global` is excluded, and why; `stats socket` as well."""
SECTIONS_NOT_HERE = {
    "peers": "it would speak with other machines",
    "program": "it would start other programs",
    "log-forward": "it would listen for other programs' logs",
    "mailers": "it would send mail",
    "ring": "log lines are kept in the run's own ring",
}
LOG = "ring@webdyno"
RING = """
ring webdyno
    format raw
    size 1048576
"""
"""Where log lines go: into memory, so that they cost what they did and fill nobody's disk."""
FLAGS_NOT_HERE = {"v4v6", "v6only", "transparent", "accept-proxy"}
"""Parameters of `bind` that the run's address hasn't; one word each."""
PAIRS_NOT_HERE = {"interface", "user", "group", "uid", "gid", "mode", "process", "thread"}
"""Likewise, with a value."""
AUTHORITIES = {"ca-file", "crl-file", "ca-verify-file", "ca-sign-file"}
CERTIFICATES = {"crt", "crt-list"}
CIPHERS = {"ssl-default-bind-ciphers", "ssl-default-server-ciphers"}
ADDRESS_AT = {"server": 2, "dispatch": 1, "server-template": 3}
"""Which of a line's words is an address."""
NAME_SERVER_AT = 2
"""It says where a server is that has a name."""
FILES_PER_CONNECTION, SPARE_FILES = 2, 200
"""To the client and on; those of listeners, checks and logs."""
THROUGH = "socks4"
"""Before the address of somebody who passes it on further."""
INITIALLY, _NO_ADDRESS = "init-addr", {"last", "libc", "none", ""}
"""Before the addresses that a name has until it is looked up, and what stands for none there."""
_LOCAL = re.compile(r"(?:(?:unix|uxst|uxdg|abnsz?|fd|sockpair)@|/)")
_KIND = re.compile(r"(?:ip|tcp|mptcp|quic)v?[46]?@")
_ADDRESS = re.compile(
    r"([A-Za-z0-9_.-]+|\*|\[[0-9A-Fa-f:.]+\]||[0-9A-Fa-f:]+?)(?::[+-]?[0-9]*)?", re.ASCII
)
_AS_CLIENTS_ASKED = {"", "*"}
"""Where clients connected to, which is this machine."""


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration; raise UserError where it can't be measured."""
    if request.root:
        raise UserError(f"{request.file}: HAProxy serves no files; leave --root out")
    mover = _Mover(request, sections(request))
    lines = list(mover.all())
    config = "{{ server.folder }}/haproxy.cfg"
    return RelocatedConfig(
        name="haproxy.cfg",
        text="".join(f"{line.text}\n" for line in lines) + (RING if mover.logs else ""),
        changes=mover.changes,
        start=["{{ needs.binary }}", "-db", "-f", config],
        check=["{{ needs.binary }}", "-c", "-f", config],
        passed_on=mover.passed_on,
        origins=[line.origin for line in lines],
    )


def _fitting(written: Sequence[str]) -> str | None:
    """Return fewer connections for HAProxy, which doesn't start with more than it has files for."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    fits = (files - SPARE_FILES) // FILES_PER_CONNECTION
    too_many = [word for word in written if word.isdecimal() and int(word) > fits]
    return str(fits) if too_many and files != resource.RLIM_INFINITY else None


class _Mover:
    def __init__(self, request: RelocationRequest, configuration: Sequence[ConfigSection]) -> None:
        self.changes: list[str] = []
        self.passed_on: list[PassedOn] = []
        self.logs = False
        """Whether it logs anywhere."""
        self._request = request
        self._sections = configuration
        self._choice = choose_bind(request, configuration)
        self._folder = _folder(request, configuration)
        self._bases = {
            name: line.values[1]
            for section in configuration
            for name in ("crt-base", "ca-base")
            for line in section.lines_named(name)
            if len(line.words) > 1
        }

    def all(self) -> Iterator[Line]:
        named = {
            word
            for section in self._sections
            for line in section.lines_named("use_backend", "default_backend")
            for word in line.values[1:2]
        }
        for section in self._sections:
            if section.kind in SECTIONS_NOT_HERE:
                self._exclude(section.lines[0], SECTIONS_NOT_HERE[section.kind])
                continue
            is_needed = section is self._choice.section or section.title in named
            if section.kind in LISTENING and not is_needed:
                self._exclude(section.lines[0], "it isn't requested")
                continue
            for written in section.lines:
                line = server_of_backend(self._request.backends, written)
                if (new := self._line(section.kind, line)) is not None:
                    self.passed_on += passed_on(line)
                    yield Line(new, line.origin)

    def _line(self, section: str, line: ConfigLine) -> str | None:
        name, words, values = line.name, line.words, line.values
        if why := self._why_not(section, line):
            self._exclude(line, why)
            return None
        if name == "log" and len(words) > 2 and values[1] != "global":
            self.logs = True
            return self._change(line, [words[0].raw, LOG, *(word.raw for word in words[2:])])
        if name == "default-path" and values[1:2] in (["config"], ["parent"]):
            escaped = re.sub(r'([\\"$])', r"\\\1", str(self._folder))
            is_plain = re.fullmatch(r"[^\s#\"'\\$]+", escaped)
            word = escaped if is_plain else f'"{escaped}"'
            return self._change(line, ["default-path", "origin", word])
        if section == "global" and name == "maxconn" and (fewer := _fitting(values[1:])):
            return self._change(line, [name, fewer])
        if name == "stick-table" and "peers" in values:
            index = values.index("peers")
            return self._change(line, [word.raw for word in (*words[:index], *words[index + 2 :])])
        return self._bind(line) if line is self._choice.bind else line.text

    def _why_not(self, section: str, line: ConfigLine) -> str:
        name, values = line.name, line.values
        if section == "global" and name in NOT_HERE:
            return NOT_HERE[name]
        if values[:2] == ["stats", "socket"] or "server-state" in name:
            return "it is nobody's but the run's"
        if name in CIPHERS and (why := why_no_ciphers(values[-1])):
            return why
        if name == "email-alert":
            return "it would send mail"
        if name in {"errorfile", "ssl-dh-param-file"} and not self._can_read(values[-1]):
            return "its file can't be read"
        if name == "bind" and section in LISTENING and line is not self._choice.bind:
            return "it isn't requested"
        return ""

    def _bind(self, line: ConfigLine) -> str:
        kept: list[str] = []
        words = iter(line.words[2:])
        for word in words:
            name = word.value
            if name in FLAGS_NOT_HERE:
                continue
            if name in PAIRS_NOT_HERE:
                next(words, None)
            elif name in CERTIFICATES | AUTHORITIES:
                kept += self._readable(word, next(words, None))
            else:
                kept.append(word.raw)
        if self._request.is_secure and not CERTIFICATES & set(kept):
            kept += ["crt", KEY_AND_CERTIFICATE]
            self.changes.append(
                f"{with_marks_shown(f'crt {KEY_AND_CERTIFICATE}')} (the run's own): none was"
            )
        if not AUTHORITIES & set(kept) and "verify" in kept:
            index = kept.index("verify")
            del kept[index : index + 2]
        return self._change(line, ["bind", f"{HOST}:{PORT}", *kept])

    def _readable(self, name: Word, path: Word | None) -> list[str]:
        """Return a file of TLS; the run's own certificate for one that can't be read."""
        if path is None:
            return [name.raw]
        base = self._bases.get("ca-base" if name.value in AUTHORITIES else "crt-base", "")
        if path.value.startswith("@") or self._can_read(str(Path(base, path.value))):
            return [name.raw, path.raw]
        if name.value in AUTHORITIES:
            self.changes.append(f"excluded: {name.raw} {path.raw} (its file can't be read)")
            return []
        now = f"crt {KEY_AND_CERTIFICATE}"
        self.changes.append(self._request.unreadable(now, path.value))
        return ["crt", KEY_AND_CERTIFICATE]

    def _can_read(self, path: str) -> bool:
        return self._request.may_read(str(self._folder / path))

    def _change(self, line: ConfigLine, words: Sequence[str]) -> str:
        new = " ".join(words)
        self.changes.append(f"{with_marks_shown(new)}, not {line.text.strip()}")
        return f"    {new}"

    def _exclude(self, line: ConfigLine, why: str) -> None:
        self.changes.append(f"excluded: {line.text.strip()} ({why})")


def _folder(request: RelocationRequest, configuration: Sequence[ConfigSection]) -> Path:
    """Return where relative paths begin: where webdyno is called, unless `default-path` says so."""
    home = request.file.parent
    values = [
        line.values[1:3]
        for section in configuration
        for line in section.lines_named("default-path")
    ]
    match values[-1] if values else []:
        case ["config", *_]:
            return home
        case ["parent", *_]:
            return home.parent
        case ["origin", path]:
            return Path(path)
    return request.folder or home


def server_of_backend(backends: Backends, line: ConfigLine) -> ConfigLine:
    """Return a line with the address of a backend, if it leads to one."""
    index = ADDRESS_AT.get(line.name)
    if index is None or len(line.words) <= index:
        return line
    address = _backend(backends, line.words[index].value)
    if address is None:
        return line
    where = f"unix@{address.socket}" if address.socket else address.text
    words = (*line.words[:index], Word(where, where), *line.words[index + 1 :])
    return ConfigLine(f"    {' '.join(word.raw for word in words)}", line.origin, words)


def _backend(backends: Backends, address: str) -> BackendAddress | None:
    if socket := re.fullmatch(r"(?:(?:unix|uxst)@)?(/.*)", address):
        return backends.of_socket(socket[1])
    match = re.fullmatch(r"(\[.*\]|[^:]+)(?::([0-9]{1,5}))?", _KIND.sub("", address, count=1))
    return backends.of_host(match[1], int(match[2]) if match[2] else None) if match else None


def passed_on(line: ConfigLine) -> Iterator[PassedOn]:
    """Return the hosts in a line, as they are written where only a request says which."""
    words = line.values
    if "set-dst" in words[1:]:
        yield PassedOn(" ".join(words[words.index("set-dst") :]), line.origin)
    index = NAME_SERVER_AT if line.name == "nameserver" else ADDRESS_AT.get(line.name)
    addresses = [] if index is None else words[index : index + 1]
    if THROUGH in words:
        addresses += words[words.index(THROUGH) + 1 :][:1]
    if INITIALLY in words:
        named = words[words.index(INITIALLY) + 1 :][:1]
        addresses += [each for each in ",".join(named).split(",") if each not in _NO_ADDRESS]
    for address in addresses:
        if not _LOCAL.match(address) and (host := _host(address)) not in _AS_CLIENTS_ASKED:
            yield PassedOn(host, line.origin)


def _host(address: str) -> str:
    match = _ADDRESS.fullmatch(_KIND.sub("", address, count=1))
    return match[1] if match else address
