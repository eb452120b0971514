"""Moves a configuration of nginx: what it listens on, writes and shows, and whom it runs as."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from webdyno.core.errors import UserError
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
    lead_to_backends,
    looked_up,
    passed_on,
    read_directives,
    written,
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
CONSTANT = ("data:", "$", "off", "engine:", "store:")
"""How an argument begins that is no file's path."""


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration, includes and all; raise UserError where it isn't right."""
    mover = _Mover(request)
    directives = mover.whole(read_directives(request))
    lead_to_backends(request.backends, directives)
    passing.demand_known(looked_up(directives), request.file)
    lines = list(written(directives))
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


class _Mover:
    """Changes a configuration, and notes what it changes."""

    def __init__(self, request: RelocationRequest) -> None:
        self.changes: list[str] = []
        self.folders: list[str] = []
        self._request = request
        self._numbers = count(1)
        self._has_options = False
        """Whether a server has the options of the measured address already."""

    def whole(self, directives: list[Directive]) -> list[Directive]:
        if not any(directive["directive"] == "http" for directive in directives):
            directives = self._as_part(directives)
        self._choice = choose_servers(self._request, directives)
        main = [
            directive
            for directive in self._all(directives)
            if directive["directive"] not in NOT_SAID_HERE
        ]
        if not any(directive["directive"] == "events" for directive in main):
            main.append(_block("events", []))
        if not any(directive["directive"] == "error_log" for directive in main):
            main.append(_made("error_log", "stderr"))
        for http in (directive for directive in main if directive["directive"] == "http"):
            self._complete(http["block"])
        return [_made("daemon", "off"), _made("pid", f"{FOLDER}/nginx.pid"), *main]

    def _as_part(self, directives: list[Directive]) -> list[Directive]:
        inner = [directive for directive in directives if directive["directive"] != "events"]
        if not any(directive["directive"] == "server" for directive in inner):
            raise UserError(f"{self._request.file} has no http and no server, so it serves nothing")
        self.changes.append("put into http { }, since it is but a part of a configuration")
        types = _made("include", "/etc/nginx/mime.types")
        known = [types] if Path("/etc/nginx/mime.types").is_file() else []
        return [_block("http", [*known, *inner])]

    def _complete(self, http: list[Directive]) -> None:
        """Add what nginx would else write to its own folders."""
        names, root = {directive["directive"] for directive in http}, self._request.root
        lacking = [kind for kind in TEMPORARY if f"{kind}_temp_path" not in names]
        http += [_made(f"{kind}_temp_path", f"{FOLDER}/temp/{kind}") for kind in lacking]
        if "access_log" not in names:
            http.append(_made("access_log", f"{FOLDER}/access.log"))
        if root and not _names_root(http):
            http.append(_made("root", str(root)))
            self.changes.append(f"root {root} (there was none)")
        if self._request.is_secure:
            servers = [
                directive
                for directive in http
                if directive["directive"] == "server" and "block" in directive
            ]
            with_certificate(servers, http, self.changes)

    def _all(self, directives: Sequence[Directive]) -> list[Directive]:
        if not self._request.is_secure:
            directives = without_tls(directives, self.changes)
        new = [new for old in directives for new in self._one(old)]
        return with_readable_files(self._request, new, self.changes)

    def _one(self, old: Directive) -> Iterator[Directive]:
        """Give what becomes of a directive; nothing of it if it is excluded."""
        name, words = old["directive"], list(old["args"])
        if name in NOT_HERE:
            self.changes.append(f"excluded: {_text(name, words)} ({NOT_HERE[name]})")
            return
        if name == "server" and "block" in old:
            yield from self._server(old, self._choice)
            return
        new = self._words(name, words)
        if new != words:
            self.changes.append(f"{with_marks_shown(_text(name, new))}, not {_text(name, words)}")
        block = {"block": self._all(old["block"])} if "block" in old else {}
        yield {**old, "args": new, **block}

    def _words(self, name: str, words: list[str]) -> list[str]:
        """Give the words behind a directive's name, moved."""
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
        """Give a server at the run's address; nothing of one that isn't measured."""
        if not any(old is server for server in choice.servers):
            ports = sorted({str(listener.port or "a socket") for listener in listeners(old)})
            self.changes.append(f"excluded: server on {' and '.join(ports)}, which isn't requested")
            return
        listening = [
            listener for listener in fitting(self._request, old) if listener.port == choice.port
        ]
        is_said = any(listener.is_default for listener in listening) or old is not choice.servers[0]
        words = self._parameters(listening, is_default=old is choice.default and is_said)
        now = with_marks_shown(_text("listen", [f"{HOST}:{PORT}", *words]))
        for directive in old["block"]:
            if directive["directive"] == "listen":
                self.changes.append(f"{now}, not {_text('listen', directive['args'])}")
        rest = [directive for directive in old["block"] if directive["directive"] != "listen"]
        listen = _made("listen", f"{HOST}:{PORT}", *words)
        origins = [
            directive.get("origin")
            for directive in old["block"]
            if directive["directive"] == "listen"
        ]
        listen["origin"] = next(iter(origins), old.get("origin"))
        yield {**old, "block": [listen, *self._all(rest)]}

    def _parameters(self, listening: Sequence[Listener], *, is_default: bool) -> list[str]:
        """Give the parameters of the one `listen` that stands for several."""
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
    return any(
        directive["directive"] == "root" or _names_root(directive.get("block", []))
        for directive in block
    )


def _made(name: str, *words: str) -> Directive:
    return {"directive": name, "args": list(words), "line": 0}


def _block(name: str, inner: list[Directive]) -> Directive:
    return {"directive": name, "args": [], "line": 0, "block": inner}


def _text(name: str, words: Sequence[str]) -> str:
    return " ".join([name, *words])


def path_named(request: RelocationRequest, word: str) -> str:
    """Give a file as nginx finds it: in the configuration's folder, or where it is installed."""
    if word.startswith(("/", *CONSTANT)) or not word:
        return word
    places = (request.file.parent / word, SYSTEM / word)
    return str(next((place for place in places if os.path.exists(place)), places[0]))  # noqa: PTH110 (any)


def without_tls(block: Sequence[Directive], changes: list[str]) -> list[Directive]:
    """Exclude what is of no use without TLS, files that would have to be read among it."""
    kept = [
        directive
        for directive in block
        if not directive["directive"].startswith("ssl_") and directive["directive"] != "ssl"
    ]
    if len(kept) < len(block):
        changes.append("excluded: what begins with ssl_ (requested is HTTP without TLS)")
    return kept


def with_readable_files(
    request: RelocationRequest, block: Sequence[Directive], changes: list[str]
) -> list[Directive]:
    """Put the run's own certificate in the place of pairs that the server couldn't read."""
    lost = {
        directive["directive"]
        for directive in block
        if directive["directive"] in DISPENSABLE
        and directive["args"]
        and not _is_readable(request, directive["args"][0])
    }
    if "ssl_client_certificate" in lost:
        lost.add("ssl_verify_client")
    for directive in block:
        if directive["directive"] in lost:
            words = " ".join([directive["directive"], *directive["args"]])
            changes.append(f"excluded: {words} (its file can't be read)")
    left = [directive for directive in block if directive["directive"] not in lost]
    pairs = [
        directive
        for directive in left
        if directive["directive"] in OURS_INSTEAD and directive["args"]
    ]
    if all(_is_readable(request, pair["args"][0]) for pair in pairs):
        return left
    instead = []
    for pair in pairs:
        name = pair["directive"]
        changes.append(request.unreadable(f"{name} {OURS_INSTEAD[name]}", pair["args"][0]))
        instead.append({**pair, "args": [OURS_INSTEAD[name]]})
    once = {directive["directive"]: directive for directive in reversed(instead)}
    return [*(directive for directive in left if directive not in pairs), *once.values()]


def with_certificate(
    servers: Sequence[Directive], http: Sequence[Directive], changes: list[str]
) -> None:
    """Give the run's own certificate to servers that name none."""
    if any(directive["directive"] == "ssl_certificate" for directive in http):
        return
    for server in servers:
        if not any(directive["directive"] == "ssl_certificate" for directive in server["block"]):
            for name, path in OURS_INSTEAD.items():
                server["block"].append({"directive": name, "args": [path], "line": 0})
                changes.append(
                    f"{with_marks_shown(f'{name} {path}')} (the run's own): there was none"
                )


def _is_readable(request: RelocationRequest, word: str) -> bool:
    if word.startswith(CONSTANT) or "$" in word:
        return True
    path = path_named(request, word)
    return request.may_read(path) and os.path.isfile(path)  # noqa: PTH113 (any name)
