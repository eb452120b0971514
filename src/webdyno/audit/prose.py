"""What prose gives away: loops of programs, caches, and who used the CPU."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from webdyno.audit.options import OPTIONS
from webdyno.formats.lines import NumberedLine

RAN_OUT = {
    "local ports": re.compile(
        r"(?:cannot|can't|could not|can not) assign requested address|EADDRNOTAVAIL|"
        r"bind: address already in use|EADDRINUSE|"
        r"only one usage of each socket address|\(os error (?:99|49)\)",
        re.IGNORECASE,
    ),
    "file descriptors": re.compile(r"too many open files|EMFILE|\(os error 24\)", re.IGNORECASE),
}
"""What a client ran out of -> how systems say so."""

_WORDS = (
    *("pipelin", "loop", "iter", "turns", "rounds", "cache", "cdn", "varnish", "cloudf", "% "),
    *("requested address", "already in use", "open files", "socket address", "eaddr", "emfile"),
)
"""A line without any of these says nothing here; the exact patterns are slower."""
_LOOP = re.compile(
    r"^(?:(?:let|var|const|int|long|my|for)\b\s*\(?\s*(?:(?:let|var|int|long)\s+)?)?"
    r"\$?(loops?|iter(?:ation)?s?|turns|rounds)\s*:?=\s*(\d{3,12})\s*(?:[;)#/]|$)",
    re.IGNORECASE,
)
"""A statement of a program; in a sentence the same words say what a run was made of."""
_PAGE_CACHE = re.compile(
    r"W3[ -]?Total[ -]?Cache|WP[ -](?:Super|Fastest|Rocket)[ -]?Cache|page[ -]cach\w+|"
    r"fastcgi_cache|proxy_cache|\bVarnish\b|\bCDN\b|CloudFlare|CloudFront",
    re.IGNORECASE,
)
_NOT_THERE = re.compile(
    r"\b(?:no|not|without|neither|nor|never|isn't|wasn't|aren't|instead of|disabled?|off|kein\w*|"
    r"ohne|nicht|sans|pas)\b[^.;:!?]{0,80}$",
    re.IGNORECASE,
)
_OFF_BEHIND = re.compile(
    r"[^.;:!?]{0,40}?\b(?:off|disabled|bypassed|switched off|not used|no-cache)\b", re.IGNORECASE
)
_KERNELS = re.compile(
    r"\b(?:kernel|linux|os|operating system|file ?system|disk|memory|ram|vm|buffer)"
    r"(?:['\u2019]s)?\s+$",
    re.IGNORECASE,
)
"""Whose page cache holds files and not responses."""
_PIPELINED = re.compile(
    r"[\W_]{0,10}pipelin(?:e|ing)(?: factor| depth)?[\s*_`]{0,6}[:=|][\s*_`]{0,6}(\d{1,5})\b",
    re.IGNORECASE,
)
_CLIENT_CPU = re.compile(rf"\b(\d{{1,3}}) ?% ({'|'.join(sorted(OPTIONS))}|wrk2)\b")


@dataclass(frozen=True)
class CountedLoop:
    """A program's loop with a fixed number of turns."""

    line: int
    variable: str
    turns: int


@dataclass(frozen=True)
class PageCache:
    """A mention of a cache that answers with whole pages."""

    line: int
    name: str


@dataclass(frozen=True)
class ClientCpu:
    """A load generator's share of a processor, as somebody saw it."""

    line: int
    tool: str
    percent: int


@dataclass(frozen=True)
class RanOut:
    """A line that says that somebody, such as the client, had none of something left."""

    line: int
    what: str


@dataclass(frozen=True)
class PipelineDepth:
    """A setting above figures that says how many requests were sent at once."""

    line: int
    depth: int


Hint = CountedLoop | PageCache | ClientCpu | RanOut | PipelineDepth


def hints(line: NumberedLine) -> Iterator[Hint]:
    """Give what a line of prose or of a program gives away."""
    small = line.text.lower()
    if not any(word in small for word in _WORDS):
        return
    for match in _LOOP.finditer(line.text):
        yield CountedLoop(line.number, match[1].lower(), int(match[2]))
    if (depth := _PIPELINED.match(line.text)) and int(depth[1]) > 1:
        yield PipelineDepth(line.number, int(depth[1]))
    if cache := _cache_in_use(line.text):
        yield PageCache(line.number, cache)
    for what, words in RAN_OUT.items():
        if words.search(line.text):
            yield RanOut(line.number, what)
    for match in _CLIENT_CPU.finditer(line.text):
        yield ClientCpu(line.number, match[2], int(match[1]))


def _cache_in_use(text: str) -> str | None:
    """Name a cache of responses, unless the sentence says that it isn't there."""
    for match in _PAGE_CACHE.finditer(text):
        before, behind = text[max(0, match.start() - 120) : match.start()], text[match.end() :]
        kernels = match[0].lower().startswith("page") and _KERNELS.search(before)
        if not kernels and not _NOT_THERE.search(before) and not _OFF_BEHIND.match(behind):
            return match[0]
    return None
