"""What looks like somebody's measurements and wasn't read: it is named, never passed over."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webdyno.formats.lines import NumberedLine

FIGURES = "figures"
"""Kind of a part whose tool isn't known by name."""

GAP = 12
"""Lines without figures that one tool's output may have between its figures."""

FEWEST = 2
"""Lines with figures before they are an output: a single one may be a sentence's heading."""

_UNREAD_TOOLS = {
    "artillery": r"http\.(?:requests|request_rate|codes\.\d)",
    "fortio": r"Fortio \d|All done \d+ calls",
    "http_load": r"\d+ fetches(?: on \d+ conversations)?, \d+ max parallel",
    "weighttp": r"weighttp |finished in \d+ sec, \d+ millisec",
    "loadtest": r"(?:INFO )?(?:Target URL|Effective rps|Max requests):\s",
    "cassowary": r"Requests/s\.{3,}:",
    "drill": r"Time taken for tests\s{2,}\d[\d.]* seconds$",
    "Nighthawk": r"Nighthawk - A layer 7",
    "Goose": r"=== PER (?:SCENARIO|REQUEST) METRICS",
    "Hyperfoil": r"PHASE\s+METRIC\s+THROUGHPUT",
    "tsung": r"Tsung version|stats: (?:request|page|users) \d",
    "slow_cooker": r"# sending \d+ GET req/s with concurrency",
    "gobench": r"Dispatching \d+ (?:goroutines|clients)",
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
        """Look at the next line; gives the part that ended before it."""
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
        """Give the part under way, if it is one."""
        part, self._part = self._part, None
        if part and part.is_result:
            yield part


def _is_figure(text: str) -> bool:
    if not _LABELLED.match(text) or _CODE.search(text) or len(text.split()) > MOST_WORDS:
        return False
    return bool(_RATE_OR_TIME.search(text) or _OTHER.search(text))


def outside(parts: Iterable[UnreadPart], read: Iterable[tuple[int, int]]) -> list[UnreadPart]:
    """Give the parts of which no line was read after all, and no line is in an earlier part."""
    kept: list[UnreadPart] = []
    ranges = Ranges(read)
    for part in sorted(parts, key=lambda each: each.first_line):
        apart = not kept or part.first_line > kept[-1].last_line
        if apart and not ranges.meet(part.first_line, part.last_line):
            kept.append(part)
    return kept


class Ranges:
    """Ranges of lines, joined where they overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(ranges):
            if self._lasts and first <= self._lasts[-1]:
                self._lasts[-1] = max(last, self._lasts[-1])
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def meet(self, first: int, last: int) -> bool:
        """Whether a line from first to last is in one of them."""
        place = bisect_right(self._firsts, last)
        return place > 0 and self._lasts[place - 1] >= first
