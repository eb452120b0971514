"""Certificates of a configuration of nginx: its own where they can be read, else the run's."""

import os
import re
from collections.abc import Sequence

from webdyno.own.moved import CERTIFICATE, KEY, Wanted, shown
from webdyno.own.nginx_read import SYSTEM, Directive

OURS_INSTEAD = {"ssl_certificate": CERTIFICATE, "ssl_certificate_key": KEY}
DISPENSABLE = {
    *("ssl_dhparam", "ssl_trusted_certificate", "ssl_client_certificate", "ssl_crl"),
    *("ssl_password_file", "ssl_session_ticket_key"),
}
"""Files without which a server can be measured where they can't be read."""
BESIDE = re.compile(
    r".*_(certificate|certificate_key|crl|dhparam|ticket_key|password_file|user_file)"
)
"""Directives whose relative paths begin in the folder of the configuration."""
CONSTANT = ("data:", "$", "off", "engine:", "store:")
"""How an argument begins that is no file's path."""


def path_named(wanted: Wanted, word: str) -> str:
    """Give a file as nginx finds it: in the configuration's folder, or where it is installed."""
    if word.startswith(("/", *CONSTANT)) or not word:
        return word
    places = (wanted.file.parent / word, SYSTEM / word)
    return str(next((it for it in places if os.path.exists(it)), places[0]))  # noqa: PTH110 (any)


def without_tls(block: Sequence[Directive], changes: list[str]) -> list[Directive]:
    """Leave out what is of no use without TLS, files that would have to be read among it."""
    kept = [
        it for it in block if not it["directive"].startswith("ssl_") and it["directive"] != "ssl"
    ]
    if len(kept) < len(block):
        changes.append("left out: what begins with ssl_ (asked for is HTTP without TLS)")
    return kept


def with_readable_files(
    wanted: Wanted, block: Sequence[Directive], changes: list[str]
) -> list[Directive]:
    """Put the run's own certificate in the place of pairs that the server couldn't read."""
    lost = {
        it["directive"]
        for it in block
        if it["directive"] in DISPENSABLE and it["args"] and not _is_readable(wanted, it["args"][0])
    }
    if "ssl_client_certificate" in lost:
        lost.add("ssl_verify_client")
    for it in block:
        if it["directive"] in lost:
            words = " ".join([it["directive"], *it["args"]])
            changes.append(f"left out: {words} (its file can't be read)")
    left = [it for it in block if it["directive"] not in lost]
    pairs = [it for it in left if it["directive"] in OURS_INSTEAD and it["args"]]
    if all(_is_readable(wanted, it["args"][0]) for it in pairs):
        return left
    instead = []
    for it in pairs:
        name = it["directive"]
        changes.append(wanted.unreadable(f"{name} {OURS_INSTEAD[name]}", it["args"][0]))
        instead.append({**it, "args": [OURS_INSTEAD[name]]})
    once = {it["directive"]: it for it in reversed(instead)}
    return [*(it for it in left if it not in pairs), *once.values()]


def with_certificate(
    servers: Sequence[Directive], http: Sequence[Directive], changes: list[str]
) -> None:
    """Give the run's own certificate to servers that name none."""
    if any(it["directive"] == "ssl_certificate" for it in http):
        return
    for server in servers:
        if not any(it["directive"] == "ssl_certificate" for it in server["block"]):
            for name, path in OURS_INSTEAD.items():
                server["block"].append({"directive": name, "args": [path], "line": 0})
                changes.append(f"{shown(f'{name} {path}')} (the run's own): there was none")


def _is_readable(wanted: Wanted, word: str) -> bool:
    if word.startswith(CONSTANT) or "$" in word:
        return True
    path = path_named(wanted, word)
    return wanted.may_read(path) and os.path.isfile(path)  # noqa: PTH113 (any name)
