"""Chooses what of a configuration of HAProxy is measured: a port, and the section behind it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webdyno.model.mistake import Mistake
from webdyno.own.haproxy_lines import ConfigLine, Section
from webdyno.own.moved import Wanted

LISTENING = ("frontend", "listen")
STATISTICS = re.compile(r"stats|http-request use-service prometheus-exporter")
REFUSING = {"deny", "reject", "silent-drop", "tarpit"}
ON_A_CONDITION = {"if", "unless"}


@dataclass(frozen=True)
class Choice:
    """What is measured."""

    port: int
    section: Section
    bind: ConfigLine


def choose(wanted: Wanted, sections: Sequence[Section]) -> Choice:
    """Choose; raise Mistake where nothing listens that could be asked."""
    listening = [it for it in sections if it.kind in LISTENING]
    if not listening:
        raise Mistake(f"{wanted.file} has no frontend and no listen, so it serves nothing")
    found = [
        Choice(port, section, bind)
        for section in listening
        for bind in section.named("bind")
        if is_secure(bind) == wanted.is_secure
        for port in ports(bind)
    ]
    reasons = {id(it): why_not(wanted, it.section) for it in found}
    unlikely = {
        port: next(filter(None, whys))
        for port in {it.port for it in found}
        if all(whys := [reasons[id(it)] for it in found if it.port == port])
    }
    port = wanted.measured([it.port for it in found], unlikely)
    there = [it for it in found if it.port == port]
    return next((it for it in there if not reasons[id(it)]), there[0])


def is_secure(bind: ConfigLine) -> bool:
    """Whether clients speak TLS there."""
    return "ssl" in bind.values[2:]


def ports(bind: ConfigLine) -> Iterator[int]:
    """Give the ports of `:80`, `*:80`, `ipv4@10.0.0.1:80` or `:80,:8000-8010`."""
    for address in bind.values[1:2]:
        for each in address.split(","):
            found = re.search(r":([0-9]{1,5})(?:-[0-9]+)?$", each)
            if found and not each.startswith(("quic", "unix@", "abns@", "fd@", "/")):
                yield int(found[1])


def why_not(wanted: Wanted, section: Section) -> str:
    """Say what speaks against a section as the one that is measured; empty if nothing does."""
    passes = section.named("use_backend", "default_backend", "server", "server-template")
    texts = [" ".join(it.values) for it in section.lines]
    answers = any(it.startswith("http-request return") for it in texts)
    if not passes and not answers and any(map(STATISTICS.match, texts)):
        return "its pages are statistics"
    if section.mode == "tcp":
        return "mode tcp: it doesn't speak HTTP itself"
    for it in section.named("redirect", "http-request", "tcp-request"):
        words = it.values
        condition = words[_condition(words) :]
        without_tls = "ssl_fc" in " ".join(condition) and not wanted.is_secure
        if condition and not without_tls:
            continue
        if words[0] == "redirect" or words[1:2] == ["redirect"]:
            return "it only redirects"
        if REFUSING & set(words[1:3]):
            return "it refuses requests"
    return ""


def _condition(words: Sequence[str]) -> int:
    """Give where a line's condition begins; its end where it has none."""
    return next((at for at, it in enumerate(words) if it in ON_A_CONDITION), len(words))
