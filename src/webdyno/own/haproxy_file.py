"""Moves a configuration of HAProxy: sections of lines, of which it rewrites a few."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from webdyno.model.mistake import Mistake
from webdyno.own.moved import FOLDER, HOST, KEY_AND_CERTIFICATE, PORT, Moved, Wanted, shown

SECTIONS = (
    *("global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "mailers"),
    *("userlist", "cache", "program", "ring", "http-errors", "fcgi-app", "log-forward"),
)
LISTENING = ("frontend", "listen")
NOT_HERE = {
    "user": "an ordinary user has no other",
    "group": "an ordinary user has no other",
    "uid": "an ordinary user has no other",
    "gid": "an ordinary user has no other",
    "chroot": "root alone may change it",
    "daemon": "it stays in the foreground",
    "master-worker": "it stays in the foreground",
    "pidfile": "it isn't needed",
    "cpu-map": "the bench says which CPUs servers have",
    "ulimit-n": "the bench says how many files may be open",
}
"""What of `global` is left out, and why; `stats socket` as well."""
SECTIONS_NOT_HERE = {
    "peers": "it would speak with other machines",
    "program": "it would start other programs",
    "log-forward": "it would listen for other programs' logs",
}
LOG = "ring@webdyno"
RING = """
ring webdyno
    format raw
    size 1048576
"""
"""Where log lines go: into memory, so that they cost what they did and fill nobody's disk."""


def moved(wanted: Wanted) -> Moved:
    """Read and move a configuration; raise Mistake where it can't be measured."""
    if wanted.root:
        raise Mistake(f"{wanted.file}: HAProxy serves no files; leave --root out")
    mover = _Mover(wanted, wanted.file.read_text(encoding="utf-8", errors="replace").splitlines())
    lines = list(mover.all())
    config = "{{ server.folder }}/haproxy.cfg"
    return Moved(
        name="haproxy.cfg",
        text="\n".join(lines) + "\n" + (RING if mover.logs else ""),
        changes=mover.changes,
        start=["{{ needs.binary }}", "-db", "-f", config],
        check=["{{ needs.binary }}", "-c", "-f", config],
    )


class _Mover:
    """Changes a configuration line by line, and notes what it changes."""

    def __init__(self, wanted: Wanted, lines: list[str]) -> None:
        self.changes: list[str] = []
        self.logs = False
        """Whether it logs anywhere."""
        self._wanted = wanted
        self._lines = [(section, _words(line), line) for section, line in _by_section(lines)]
        self._base = next((it[1] for _, it, _ in self._lines if it[:1] == ["crt-base"]), "")
        self._port = wanted.measured(
            [
                port
                for section, words, _ in self._lines
                if section in LISTENING and words[:1] == ["bind"]
                for address in words[1:2]
                if ("ssl" in words) == wanted.is_secure
                for port in map(_port, address.split(","))
                if port is not None
            ]
        )
        self._is_bound = False

    def all(self) -> Iterator[str]:
        """Give all lines, moved."""
        for section, words, line in self._lines:
            if section in SECTIONS_NOT_HERE:
                if words[:1] == [section]:
                    self._leave_out(line, SECTIONS_NOT_HERE[section])
            elif new := self._line(section, words, line):
                yield new

    def _line(self, section: str, words: list[str], line: str) -> str | None:
        """Give what becomes of a line; None where it is left out."""
        name = words[0] if words else ""
        if section == "global" and name in NOT_HERE:
            self._leave_out(line, NOT_HERE[name])
            return None
        if words[:2] == ["stats", "socket"] or words[:1] == ["server-state-file"]:
            self._leave_out(line, "it is nobody's but the run's")
            return None
        if name == "log" and len(words) > 2 and words[1] != "global":
            self.logs = True
            return self._changed(line, [name, LOG, *words[2:]])
        if name == "bind" and section in LISTENING and len(words) > 1:
            return self._bind(words, line)
        return line

    def _bind(self, words: list[str], line: str) -> str | None:
        """Bind the measured port once, and others as Unix sockets."""
        address, parameters = words[1], self._readable(words[2:])
        is_measured = ("ssl" in words) == self._wanted.is_secure and self._port in map(
            _port, address.split(",")
        )
        if is_measured and self._is_bound:
            self._leave_out(line, "this port is bound already")
            return None
        self._is_bound |= is_measured
        new = f"{HOST}:{PORT}" if is_measured else f"unix@{FOLDER}/{_plain(address)}.sock"
        kept = [it for it in parameters if it not in {"v4v6", "v6only", "transparent"}]
        return self._changed(line, ["bind", new, *kept])

    def _readable(self, parameters: list[str]) -> list[str]:
        """Put the run's own certificate in the place of one that HAProxy couldn't read."""
        new = list(parameters)
        for at, name in enumerate(parameters[:-1]):
            path = parameters[at + 1]
            if name == "crt" and not self._wanted.may_read(str(Path(self._base, path))):
                new[at + 1] = KEY_AND_CERTIFICATE
                self.changes.append(self._wanted.unreadable(f"crt {KEY_AND_CERTIFICATE}", path))
        return new

    def _changed(self, line: str, words: list[str]) -> str:
        new = " ".join(map(_quoted, words))
        self.changes.append(f"{shown(new)}, not {line.strip()}")
        return f"    {new}"

    def _leave_out(self, line: str, why: str) -> None:
        self.changes.append(f"left out: {line.strip()} ({why})")


def _by_section(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Give each line with the name of its section."""
    section = ""
    for line in lines:
        first = line.split(maxsplit=1)[0] if line.strip() else ""
        section = first if first in SECTIONS else section
        yield section, line


def _words(line: str) -> list[str]:
    """Split a line; what can't be split is for HAProxy to refuse."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _quoted(word: str) -> str:
    if re.fullmatch(r"[^\s#\"'\\]+", word):
        return word
    return '"' + re.sub(r'([\\"])', r"\\\1", word) + '"'


def _port(address: str) -> int | None:
    """Give the port of `:80`, `*:80`, `ipv4@10.0.0.1:80` or `:8000-8010`; None for a socket."""
    last = address.rpartition(":")[2].partition("-")[0]
    return int(last) if ":" in address and last.isdecimal() else None


def _plain(address: str) -> str:
    """Give an address as the name of a file."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", address).strip("-.")
