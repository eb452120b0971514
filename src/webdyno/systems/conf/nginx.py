"""Moves a configuration of nginx: what it listens on, writes and shows, and whom it runs as."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import crossplane
from crossplane.builder import EXTERNAL_BUILDERS

from webdyno.core.errors import UserError
from webdyno.core.service import Line
from webdyno.systems.conf import passing
from webdyno.systems.conf.nginx_hosts import (
    DEFAULT,
    Listener,
    MeasuredServers,
    choose_servers,
    fitting,
    listeners,
)
from webdyno.systems.conf.nginx_read import (
    SYSTEM,
    Directive,
    hosts_at_start,
    lead_to_backends,
    of_name,
    passed_on,
    read_directives,
)
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    KEY,
    NO_OTHER_USER,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    with_marks_shown,
)

INDENT = "    "
_PLAIN = re.compile(r"(?!#)(?:\\\S|\$\{\w+\}|[^\s{};\"'\\])+(?<!\$)")
"""A word that needs no quotes."""
TEMPORARY = ("client_body", "proxy", "fastcgi", "scgi", "uwsgi")
NOT_HERE = {
    "user": NO_OTHER_USER,
    "worker_priority": "root alone may raise it",
    "worker_cpu_affinity": "the testbed says which CPUs servers have",
    "lock_file": "it isn't needed",
    **dict.fromkeys(("stream", "mail"), "it isn't HTTP"),
}
"""What is excluded, and why."""
NOT_SAID_HERE = {"daemon", "pid"}
ADDRESS_PARAMETERS = ("ipv6only", "bind")
NOT_SPOKEN = ("proxy_protocol", "quic")
"""Parameters of `listen` that clients of a run don't speak."""
PROTOCOLS = {"ssl", "http2", "spdy"}
"""Parameters that each server has for itself; of all others one server may have some."""
OURS_INSTEAD = {"ssl_certificate": CERTIFICATE, "ssl_certificate_key": KEY}
DISPENSABLE = {
    *("ssl_dhparam", "ssl_trusted_certificate", "ssl_client_certificate", "ssl_crl"),
    *("ssl_password_file", "ssl_session_ticket_key"),
}
"""Files without which a server can be measured where they can't be read."""
NEXT_TO = re.compile(
    r".*_(certificate|certificate_key|crl|dhparam|ticket_key|password_file|user_file)"
)
"""Directives whose relative paths begin in the folder of the configuration."""
TYPES = Path("/etc/nginx/mime.types")
CONSTANT = ("data:", "$", "off", "engine:", "store:")
"""How an argument begins that is no file's path."""


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration, includes and all; raise UserError where it isn't right."""
    mover = _Mover(request)
    directives = mover.whole(read_directives(request))
    lead_to_backends(request.backends, directives)
    passing.demand_known(hosts_at_start(directives), request.file)
    lines = list(lines_of(directives))
    config = "{{ server.folder }}/nginx.conf"
    words = ["{{ needs.binary }}", "-e", "stderr", "-c", config]
    return RelocatedConfig(
        name="nginx.conf",
        text="\n".join(line.text for line in lines) + "\n",
        changes=mover.changes,
        start=words,
        check=[words[0], "-t", "-q", *words[1:]],
        folders=["temp", *mover.folders],
        passed_on=passed_on(directives),
        origins=[line.origin for line in lines],
    )


def lines_of(directives: list[Directive], depth: int = 0) -> Iterator[Line]:
    """Return the lines of directives, each with where it comes from."""
    margin = INDENT * depth
    for directive in directives:
        end = ";" if directive.block is None else " {"
        text = f"{margin}{_head(directive)}{end}"
        if directive.name in EXTERNAL_BUILDERS:  # code
            plain = {"directive": directive.name, "args": directive.args}
            text = margin + crossplane.build([plain])
        yield from (Line(part, directive.origin) for part in text.split("\n"))
        if directive.block is not None:
            yield from lines_of(directive.block, depth + 1)
            yield Line(margin + "}", directive.origin)


def _head(directive: Directive) -> str:
    words = " ".join(map(_quoted, directive.args))
    return (
        f"if ({words})" if directive.name == "if" else f"{_quoted(directive.name)} {words}".strip()
    )


def _quoted(word: str) -> str:
    """Return a word in quotes if it needs them, which no quotation mark in it ends."""
    if _PLAIN.fullmatch(word):
        return word
    quote = '"' if "'" in word and '"' not in word else "'"
    # What a backslash is before stays as it is.
    inner = re.sub(rf"(?s)(\\.)|[{quote}\\]", lambda match: match[1] or f"\\{match[0]}", word)
    return f"{quote}{inner}{quote}"


class _Mover:
    def __init__(self, request: RelocationRequest) -> None:
        self.changes: list[str] = []
        self.folders: list[str] = []
        self._request = request
        self._numbers = count(1)
        self._has_options = False
        """Whether a server has the options of the measured address already."""

    def whole(self, directives: list[Directive]) -> list[Directive]:
        if not of_name("http", directives):
            directives = self._as_part(directives)
        self._choice = choose_servers(self._request, directives)
        moved = self._all(directives)
        main = [directive for directive in moved if directive.name not in NOT_SAID_HERE]
        if not of_name("events", main):
            main.append(Directive("events", [], []))
        if not of_name("error_log", main):
            main.append(Directive("error_log", ["stderr"]))
        for http in of_name("http", main):
            self._complete(http.inner)
        return [Directive("daemon", ["off"]), Directive("pid", [f"{FOLDER}/nginx.pid"]), *main]

    def _as_part(self, directives: list[Directive]) -> list[Directive]:
        inner = [directive for directive in directives if directive.name != "events"]
        if not of_name("server", inner):
            raise UserError(f"{self._request.file} has no http and no server, so it serves nothing")
        self.changes.append("put into http { }, since it is but a part of a configuration")
        types = [Directive("include", [str(TYPES)])] if TYPES.is_file() else []
        return [Directive("http", [], [*types, *inner])]

    def _complete(self, http: list[Directive]) -> None:
        """Add what nginx would else write to its own folders."""
        names, root = {directive.name for directive in http}, self._request.root
        lacking = [kind for kind in TEMPORARY if f"{kind}_temp_path" not in names]
        http += [Directive(f"{kind}_temp_path", [f"{FOLDER}/temp/{kind}"]) for kind in lacking]
        if "access_log" not in names:
            http.append(Directive("access_log", [f"{FOLDER}/access.log"]))
        if root and not _names_root(http):
            http.append(Directive("root", [str(root)]))
            self.changes.append(f"root {root} (there was none)")
        if self._request.is_secure and "ssl_certificate" not in names:
            add_certificates(http, self.changes)

    def _all(self, directives: Sequence[Directive]) -> list[Directive]:
        if not self._request.is_secure:
            directives = without_tls(directives, self.changes)
        new = [new for old in directives for new in self._one(old)]
        return with_readable_files(self._request, new, self.changes)

    def _one(self, old: Directive) -> Iterator[Directive]:
        if old.name in NOT_HERE:
            self.changes.append(f"excluded: {old.text} ({NOT_HERE[old.name]})")
            return
        if old.name == "server" and old.block is not None:
            yield from self._server(old, self._choice)
            return
        new = replace(old, args=self._words(old.name, old.args))
        if new.args != old.args:
            self.changes.append(f"{with_marks_shown(new.text)}, not {old.text}")
        if old.block is not None:
            new.block = self._all(old.block)
        yield new

    def _words(self, name: str, words: list[str]) -> list[str]:
        first, rest = (words[0] if words else ""), words[1:]
        if name == "error_log":
            return ["stderr", *(rest if not first.startswith("syslog:") else rest[:1])]
        if name == "access_log" and first != "off":
            return [f"{FOLDER}/access.log", *rest]
        if name.endswith("_temp_path"):
            return [f"{FOLDER}/temp/{name.removesuffix('_temp_path')}", *rest]
        if name.endswith("_cache_path"):
            folder = f"cache-{next(self._numbers)}"
            self.folders.append(folder)
            return [
                f"{FOLDER}/{folder}",
                *(word for word in rest if not word.startswith("use_temp")),
            ]
        if name == "root" and self._request.root:
            return [str(self._request.root)]
        if name in {"root", "alias"} and first:
            return [self._request.folder_of(first), *rest]
        if NEXT_TO.fullmatch(name) and first:
            return [path_named(self._request, first), *rest]
        return words

    def _server(self, old: Directive, choice: MeasuredServers) -> Iterator[Directive]:
        """Return a server at the run's address; nothing of one that isn't measured."""
        if old not in choice.servers:
            ports = sorted({str(listener.port or "a socket") for listener in listeners(old)})
            self.changes.append(f"excluded: server on {' and '.join(ports)}, which isn't requested")
            return
        there = fitting(self._request, old)
        listening = [listener for listener in there if listener.port == choice.port]
        is_said = any(listener.is_default for listener in listening) or old is not choice.servers[0]
        words = self._parameters(listening, is_default=old is choice.default and is_said)
        before = of_name("listen", old.inner)
        origin = before[0].origin if before else old.origin
        listen = Directive("listen", [f"{HOST}:{PORT}", *words], origin=origin)
        self.changes += [f"{with_marks_shown(listen.text)}, not {each.text}" for each in before]
        rest = [directive for directive in old.inner if directive.name != "listen"]
        yield replace(old, block=[listen, *self._all(rest)])

    def _parameters(self, listening: Sequence[Listener], *, is_default: bool) -> list[str]:
        """Return the parameters of the one `listen` that stands for several."""
        kept: dict[str, str] = {}
        for word in (word for listener in listening for word in listener.words):
            is_of_address = word.startswith(ADDRESS_PARAMETERS)
            if not (is_of_address or word in DEFAULT or word in NOT_SPOKEN):
                kept.setdefault(word.partition("=")[0], word)
        options = [name for name in kept if name not in PROTOCOLS]
        if options and self._has_options:
            kept = {name: word for name, word in kept.items() if name in PROTOCOLS}
        self._has_options |= bool(options)
        return [*(["default_server"] if is_default else []), *kept.values()]


def _names_root(block: Sequence[Directive]) -> bool:
    return any(directive.name == "root" or _names_root(directive.inner) for directive in block)


def path_named(request: RelocationRequest, word: str) -> str:
    """Return a path as nginx finds it: in the configuration's folder, or where it is installed."""
    if word.startswith(("/", *CONSTANT)) or not word:
        return word
    places = (request.file.parent / word, SYSTEM / word)
    return str(next((place for place in places if os.path.exists(place)), places[0]))  # noqa: PTH110 (any)


def without_tls(block: Sequence[Directive], changes: list[str]) -> list[Directive]:
    """Exclude what is of no use without TLS, files that would have to be read among it."""
    kept = [each for each in block if not each.name.startswith("ssl_") and each.name != "ssl"]
    if len(kept) < len(block):
        changes.append("excluded: what begins with ssl_ (requested is HTTP without TLS)")
    return kept


def with_readable_files(
    request: RelocationRequest, block: Sequence[Directive], changes: list[str]
) -> list[Directive]:
    """Put the run's own certificate in the place of pairs that the server couldn't read."""
    lost = {
        each.name
        for each in block
        if each.name in DISPENSABLE and each.args and not _is_readable(request, each.args[0])
    }
    if "ssl_client_certificate" in lost:
        lost.add("ssl_verify_client")
    excluded = [directive for directive in block if directive.name in lost]
    changes += [f"excluded: {directive.text} (its file can't be read)" for directive in excluded]
    left = [directive for directive in block if directive.name not in lost]
    pairs = [each for each in left if each.name in OURS_INSTEAD and each.args]
    if all(_is_readable(request, each.args[0]) for each in pairs):
        return left
    ours = [replace(each, args=[OURS_INSTEAD[each.name]]) for each in pairs]
    both = zip(ours, pairs, strict=True)
    changes += [request.unreadable(now.text, before.args[0]) for now, before in both]
    once = {directive.name: directive for directive in reversed(ours)}
    return [*(directive for directive in left if directive not in pairs), *once.values()]


def add_certificates(http: Sequence[Directive], changes: list[str]) -> None:
    """Show the run's own certificate at servers that name none."""
    for server in of_name("server", http):
        if server.block is not None and not of_name("ssl_certificate", server.block):
            for name, path in OURS_INSTEAD.items():
                server.block.append(ours := Directive(name, [path]))
                changes.append(f"{with_marks_shown(ours.text)} (the run's own): there was none")


def _is_readable(request: RelocationRequest, word: str) -> bool:
    if word.startswith(CONSTANT) or "$" in word:
        return True
    path = path_named(request, word)
    return request.may_read(path) and os.path.isfile(path)  # noqa: PTH113 (any name)
