"""What the text around the figures gives away: loops in programs, caches, who used the CPU."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from webdyno.readers.lines import Line


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


_WORDS = ("loop", "iter", "turns", "rounds", "cache", "cdn", "varnish", "cloudf", "% ")
"""A line without any of these says nothing here; the exact patterns are slower."""

_LOOP = re.compile(
    r"(?:^|[\s;({$])\$?(loops?|iter(?:ation)?s?|turns|rounds)\s*:?=\s*(\d{3,12})\b", re.IGNORECASE
)
_PAGE_CACHE = re.compile(
    r"W3[ -]?Total[ -]?Cache|WP[ -](?:Super|Fastest|Rocket)[ -]?Cache|page[ -]cach\w+|"
    r"fastcgi_cache|proxy_cache|\bVarnish\b|\bCDN\b|CloudFlare|CloudFront",
    re.IGNORECASE,
)
_CLIENT_CPU = re.compile(
    r"\b(\d{1,3}) ?% (ab|httperf|wrk2?|h2load|hey|oha|siege|redis-benchmark)\b"
)


def hints(line: Line) -> Iterator[CountedLoop | PageCache | ClientCpu]:
    """Give what a line of prose or of a program gives away."""
    small = line.text.lower()
    if not any(word in small for word in _WORDS):
        return
    for found in _LOOP.finditer(line.text):
        yield CountedLoop(line.number, found[1].lower(), int(found[2]))
    if cache := _PAGE_CACHE.search(line.text):
        yield PageCache(line.number, cache[0])
    for found in _CLIENT_CPU.finditer(line.text):
        yield ClientCpu(line.number, found[2], int(found[1]))
