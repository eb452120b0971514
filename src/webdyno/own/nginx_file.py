"""Moves a configuration of nginx: what it listens on, what it writes, whom it runs as."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import crossplane

from webdyno.model.mistake import Mistake
from webdyno.own.moved import (
    CERTIFICATE,
    FOLDER,
    HOST,
    HTTP,
    KEY,
    PORT,
    Moved,
    Wanted,
    beside,
    shown,
)

Directive = dict[str, Any]
"""As crossplane gives it: `directive`, `args`, perhaps a `block` of more."""

TEMPORARY = ("client_body", "proxy", "fastcgi", "scgi", "uwsgi")
NOT_AS_ROOT = {
    "user": "an ordinary user has no other",
    "worker_priority": "root alone may raise it",
    "worker_cpu_affinity": "the bench says which CPUs servers have",
    "lock_file": "it isn't needed",
}
"""What is left out, and why."""
KEYS_BESIDE = ("ssl_certificate", "ssl_certificate_key", "ssl_dhparam", "auth_basic_user_file")
"""Files whose relative paths begin beside the configuration."""
OURS_INSTEAD = {"ssl_certificate": CERTIFICATE, "ssl_certificate_key": KEY}
ADDRESS_PARAMETERS = ("ipv6only", "bind")


def moved(wanted: Wanted) -> Moved:
    """Read and move a configuration, includes and all; raise Mistake where it isn't right."""
    mover = _Mover(wanted)
    text = crossplane.build(mover.whole(_parsed(wanted.file)), indent=4)
    config = f"{FOLDER}/nginx.conf".replace(FOLDER, "{{ server.folder }}")
    words = ["{{ needs.binary }}", "-e", "stderr", "-c", config]
    return Moved(
        name="nginx.conf",
        text=text + "\n",
        changes=mover.changes,
        start=words,
        check=[words[0], "-t", "-q", *words[1:]],
        folders=["temp", *mover.folders],
    )


def _parsed(file: Path) -> list[Directive]:
    payload = crossplane.parse(
        str(file), combine=True, strict=False, check_ctx=False, check_args=False, comments=False
    )
    if payload["errors"]:
        fault = payload["errors"][0]
        raise Mistake(f"{fault['file']}:{fault['line'] or 1}: {_without_place(fault['error'])}")
    directives: list[Directive] = payload["config"][0]["parsed"]
    return directives


def _without_place(error: str) -> str:
    return error.rpartition(" in ")[0] or error


class _Mover:
    """Changes a configuration, and notes what it changes."""

    def __init__(self, wanted: Wanted) -> None:
        self.changes: list[str] = []
        self.folders: list[str] = []
        self._wanted = wanted
        self._file = wanted.file
        self._root = wanted.root
        self._numbers = count(1)

    def whole(self, directives: list[Directive]) -> list[Directive]:
        """Give the whole configuration, moved."""
        if not any(it["directive"] == "http" for it in directives):
            inner = [it for it in directives if it["directive"] != "events"]
            if not any(it["directive"] == "server" for it in inner):
                raise Mistake(f"{self._file} has no http and no server, so it serves nothing")
            self.changes.append("put into http { }, since it is but a part of a configuration")
            types = _made("include", "/etc/nginx/mime.types")
            known = [types] if Path("/etc/nginx/mime.types").is_file() else []
            directives = [_block("http", [*known, *inner])]
        self._measured = self._measured_port(directives)
        main = [it for it in self._all(directives) if it["directive"] not in {"daemon", "pid"}]
        if not any(it["directive"] == "events" for it in main):
            main.append(_block("events", []))
        if not any(it["directive"] == "error_log" for it in main):
            main.append(_made("error_log", "stderr"))
        for http in (it for it in main if it["directive"] == "http"):
            self._complete(http["block"])
        return [_made("daemon", "off"), _made("pid", f"{FOLDER}/nginx.pid"), *main]

    def _complete(self, http: list[Directive]) -> None:
        """Add what nginx would else write to its own folders."""
        there = {it["directive"] for it in http}
        lacking = [kind for kind in TEMPORARY if f"{kind}_temp_path" not in there]
        http += [_made(f"{kind}_temp_path", f"{FOLDER}/temp/{kind}") for kind in lacking]
        if "access_log" not in there:
            http.append(_made("access_log", f"{FOLDER}/access.log"))
        if self._root and "root" not in there and not self._names_root(http):
            http.append(_made("root", str(self._root)))
            self.changes.append(f"root {self._root} (there was none)")

    def _names_root(self, block: Sequence[Directive]) -> bool:
        return any(
            it["directive"] == "root" or self._names_root(it.get("block", [])) for it in block
        )

    def _all(self, directives: Sequence[Directive]) -> list[Directive]:
        return self._with_readable_keys([new for old in directives for new in self._one(old)])

    def _with_readable_keys(self, block: list[Directive]) -> list[Directive]:
        """Put the run's own certificate in the place of pairs that the server couldn't read."""
        pairs = [it for it in block if it["directive"] in OURS_INSTEAD and it["args"]]
        paths = [it["args"][0] for it in pairs]
        if all("$" in it or it.startswith("data:") or self._wanted.may_read(it) for it in paths):
            return block
        for it in pairs:
            now = _text(it["directive"], [OURS_INSTEAD[it["directive"]]])
            self.changes.append(self._wanted.unreadable(now, it["args"][0]))
        instead = [_made(name, path) for name, path in OURS_INSTEAD.items()]
        return [*(it for it in block if it not in pairs), *instead]

    def _one(self, old: Directive) -> Iterator[Directive]:
        """Give what becomes of a directive; None of it if it is left out."""
        name, words = old["directive"], list(old["args"])
        if name in NOT_AS_ROOT:
            self.changes.append(f"left out: {_text(name, words)} ({NOT_AS_ROOT[name]})")
            return
        if name == "server" and "block" in old:
            yield {**old, "block": self._server(old["block"])}
            return
        new = self._words(name, words)
        if new != words:
            self.changes.append(f"{shown(_text(name, new))}, not {_text(name, words)}")
        block = {"block": self._all(old["block"])} if "block" in old else {}
        yield {**old, "args": new, **block}

    def _words(self, name: str, words: list[str]) -> list[str]:
        """Give the words behind a directive's name, moved."""
        first, rest = (words[0] if words else ""), words[1:]
        if name == "error_log":
            return ["stderr", *rest]
        if name == "access_log" and first != "off" and not first.startswith("syslog:"):
            return [f"{FOLDER}/access.log", *rest]
        if name.endswith("_temp_path"):
            return [f"{FOLDER}/temp/{name.removesuffix('_temp_path')}", *rest]
        if name.endswith("_cache_path"):
            folder = f"cache-{next(self._numbers)}"
            self.folders.append(folder)
            return [f"{FOLDER}/{folder}", *(it for it in rest if not it.startswith("use_temp"))]
        if name == "root" and self._root:
            return [str(self._root)]
        if name in KEYS_BESIDE and first and not first.startswith(("data:", "$", "off")):
            return [beside(first, self._file), *rest]
        return words

    def _server(self, block: Sequence[Directive]) -> list[Directive]:
        """Move what a server listens on: one port is measured, others become Unix sockets."""
        listening = [it["args"] for it in block if it["directive"] == "listen"] or [[str(HTTP)]]
        addresses: dict[str, list[str]] = {}
        for address, *parameters in listening:
            new = self._address(address)
            kept = [it for it in parameters if not it.startswith(ADDRESS_PARAMETERS)]
            addresses.setdefault(new, kept)
            now, before = _text("listen", [new, *kept]), _text("listen", [address, *parameters])
            self.changes.append(f"{shown(now)}, not {before}")
        lines = [_made("listen", address, *kept) for address, kept in addresses.items()]
        return [*lines, *self._all([it for it in block if it["directive"] != "listen"])]

    def _address(self, address: str) -> str:
        port = _port(address)
        if port == self._measured:
            return f"{HOST}:{PORT}"
        return f"unix:{FOLDER}/{port or 'socket-' + str(next(self._numbers))}.sock"

    def _measured_port(self, directives: Sequence[Directive]) -> int:
        """Choose the port that is measured: the first of those with TLS, or without."""
        return self._wanted.measured(
            [
                port
                for words in _listening(directives)
                if (port := _port(words[0])) is not None
                and ("ssl" in words) == self._wanted.is_secure
                and "quic" not in words
            ]
        )


def _listening(directives: Sequence[Directive]) -> Iterator[list[str]]:
    """Give the words behind each listen; a server without one listens on port 80."""
    for it in directives:
        if it["directive"] == "server" and "block" in it:
            yield from [e["args"] for e in it["block"] if e["directive"] == "listen"] or [["80"]]
        elif it["directive"] == "http":
            yield from _listening(it["block"])


def _port(address: str) -> int | None:
    """Give the port of an address as nginx writes it: `80`, `*:80`, `[::]:80`, `localhost`."""
    if address.startswith("unix:"):
        return None
    last = address.rpartition(":")[2] if not address.endswith("]") else ""
    return int(last) if last.isdecimal() else HTTP


def _made(name: str, *words: str) -> Directive:
    return {"directive": name, "args": list(words), "line": 0}


def _block(name: str, inner: list[Directive]) -> Directive:
    return {"directive": name, "args": [], "line": 0, "block": inner}


def _text(name: str, words: Sequence[str]) -> str:
    return " ".join([name, *words])
