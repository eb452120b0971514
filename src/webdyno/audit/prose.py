"""What else stands in a text: hints in prose, and what looks like measurements and wasn't read."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from webdyno.audit.commands import any_tool
from webdyno.formats.text import NumberedLine

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
    r"^(?:(?:let|var|const|int|long|my|for)\b\s{0,20}\(?\s{0,20}(?:(?:let|var|int|long)\s{1,20})?)?"
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


@cache
def _client_cpu() -> re.Pattern[str]:
    return re.compile(rf"\b(\d{{1,3}}) ?% ({any_tool()})\b")


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
    """Return what a line of prose or of a program gives away."""
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
    for match in _client_cpu().finditer(line.text):
        yield ClientCpu(line.number, match[2], int(match[1]))


def _cache_in_use(text: str) -> str | None:
    """Return the name of a cache of responses, unless the sentence says that it isn't there."""
    for match in _PAGE_CACHE.finditer(text):
        before, behind = text[max(0, match.start() - 120) : match.start()], text[match.end() :]
        kernels = match[0].lower().startswith("page") and _KERNELS.search(before)
        if not kernels and not _NOT_THERE.search(before) and not _OFF_BEHIND.match(behind):
            return match[0]
    return None


FIGURES = "figures"
"""Kind of a part whose tool isn't known by name."""

GAP = 12
"""Lines without figures that one tool's output may have between its figures."""

FEWEST = 2
"""Lines with figures before they are an output: a single one may be a sentence's heading."""

_UNREAD_TOOLS = {
    "artillery": r"http\.(?:requests|request_rate|codes\.\d)",
    "fortio": r"Fortio \d|All done \d{1,15} calls",
    "http_load": r"\d{1,15} fetches(?: on \d{1,15} conversations)?, \d{1,15} max parallel",
    "weighttp": r"weighttp |finished in \d{1,15} sec, \d{1,15} millisec",
    "loadtest": r"(?:INFO )?(?:Target URL|Effective rps|Max requests):\s",
    "cassowary": r"Requests/s\.{3,60}:",
    "drill": r"Time taken for tests\s{2,40}\d[\d.]{0,15} seconds$",
    "Nighthawk": r"Nighthawk - A layer 7",
    "Goose": r"=== PER (?:SCENARIO|REQUEST) METRICS",
    "Hyperfoil": r"PHASE\s{1,40}METRIC\s{1,40}THROUGHPUT",
    "tsung": r"Tsung version|stats: (?:request|page|users) \d",
    "slow_cooker": r"# sending \d{1,15} GET req/s with concurrency",
    "gobench": r"Dispatching \d{1,15} (?:goroutines|clients)",
}
_NAMED = re.compile(
    "|".join(f"(?P<tool{n}>{mark})" for n, mark in enumerate(_UNREAD_TOOLS.values()))
)
_NAMES = tuple(_UNREAD_TOOLS)

_RATE_OR_TIME = re.compile(
    r"req(?:uest)?s?[\s_]?(?:/|per)[\s_]?s|\b[rqt]ps\b|latenc|throughput|percentile|\bp9\d|"
    r"response[\s_]time",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"(?:\b|_)requests\b|error|fail|non-2xx|status|transfer|concurren|timeout|connections|\bhits\b|"
    r"\b(?:avg|average|mean|max|min|median)(?:\b|_)|\b(?:50|75|90|95|99)(?:\.\d{1,3})?(?:%|th)",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"[^\d\s(\[{-][^.;{}]{1,60}?(?:[:=|│]|\.{2}|\s{2})[\s.]{0,80}[<~≈+]?\d|\d{1,3}(?:\.\d{1,3})?%\s"
)
_CODE = re.compile(r"[;{}]$|=>|\bfunction\b|^(?:const|let|var|def|import|#include)\b")
MOST_WORDS = 12


@dataclass(frozen=True)
class UnreadPart:
    """Lines that look like measurements."""

    kind: str
    """A tool's name, or FIGURES."""
    first_line: int
    last_line: int
    counted: int = 0
    """Lines of it with a label and a figure."""
    rates: int = 0
    """Those of them that are throughput or a time: counts alone are in any text."""

    @property
    def is_result(self) -> bool:
        """Whether there is enough of it to speak of an output."""
        return self.kind != FIGURES or (self.counted >= FEWEST and self.rates > 0)


@dataclass
class UnreadFinder:
    """Looks at the lines that nothing else understood."""

    _part: UnreadPart | None = None

    def take(self, line: NumberedLine) -> Iterator[UnreadPart]:
        """Look at the next line; return the part that ended before it."""
        part, text = self._part, line.text
        if part and line.number - part.last_line > GAP:
            yield from self.end()
            part = None
        named = _NAMED.match(text)
        if named and named.lastgroup:
            kind = _NAMES[int(named.lastgroup.removeprefix("tool"))]
        elif _is_figure(text):
            kind = part.kind if part else FIGURES
        else:
            return
        before = part or UnreadPart(kind, line.number, line.number)
        self._part = UnreadPart(
            kind if before.kind == FIGURES else before.kind,
            before.first_line,
            line.number,
            before.counted + 1,
            before.rates + bool(_RATE_OR_TIME.search(text)),
        )

    def end(self) -> Iterator[UnreadPart]:
        """Return the part under way, if it is one."""
        part, self._part = self._part, None
        if part and part.is_result:
            yield part


def _is_figure(text: str) -> bool:
    if not _LABELLED.match(text) or _CODE.search(text) or len(text.split()) > MOST_WORDS:
        return False
    return bool(_RATE_OR_TIME.search(text) or _OTHER.search(text))


def outside(parts: Iterable[UnreadPart], read: Iterable[tuple[int, int]]) -> list[UnreadPart]:
    """Return the parts of which no line was read after all, and no line is in an earlier part."""
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in sorted(read):  # ranges that overlap become one
        if lasts and first <= lasts[-1]:
            lasts[-1] = max(last, lasts[-1])
        else:
            firsts.append(first)
            lasts.append(last)
    kept: list[UnreadPart] = []
    for part in sorted(parts, key=lambda each: each.first_line):
        before = bisect_right(firsts, part.last_line)
        was_read = before > 0 and lasts[before - 1] >= part.first_line
        if not was_read and (not kept or part.first_line > kept[-1].last_line):
            kept.append(part)
    return kept
