"""How a tool's output is described, and what is collected while its lines pass by."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from webdyno.model.quantities import TIMES_S
from webdyno.readers.lines import Line
from webdyno.readers.output import Output

COUNT_DIGITS = 20
"""As many as the largest 64-bit count has."""

NUMBER = r"\d{1,18}(?:\.\d{0,20})?"
"""Bounded, so that no line makes a number that is no number any more."""

MOST_ROWS = 100
"""Rows of percentiles, statuses or errors that are kept of one output."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_INTEGERS = {it.name for it in fields(Output) if "int" in str(it.type)}
_FLOATS = {it.name for it in fields(Output) if "float" in str(it.type)}

_SPELLINGS = {"msec": "ms", "milliseconds": "ms", "sec": "s", "secs": "s"}
"""Tools' own words for units of time."""
_CONVERTED = {
    "took": "duration_s",
    "mean": "mean_ms",
    "mean_s": "mean_ms",
    "max": "max_ms",
    "max_s": "max_ms",
    "connect_max": "connect_max_ms",
    "transfer": "transfer_kib_s",
    "answers_2xx": "by_status",
    "url": "host",
}
"""Figures that tools print in units of their own -> the attribute that is made of them."""

_BYTES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}

_QUANTITY = re.compile(rf"({NUMBER})\s*([a-zA-Zµ]*)")


@dataclass
class Facts:
    """What has been read of one output."""

    first_line: int
    last_line: int
    texts: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    percentiles_ms: dict[float, float] = field(default_factory=dict)
    by_status: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    """What went wrong, in the tool's words -> how often."""
    contradicted: set[str] = field(default_factory=set)
    """Figures that were printed again with another value."""

    def add(self, line: Line, found: dict[str, str]) -> None:
        """Note what a line says; the first to say something is believed."""
        self.last_line = line.number
        if "percent" in found:
            self.lines.setdefault("percentiles_ms", line.number)
            _add_row(self.percentiles_ms, float(found["percent"]), in_ms(found["at"]))
        elif "status" in found:
            self.lines.setdefault("by_status", line.number)
            _add_row(self.by_status, found["status"], int(found["count"]))
        elif "error" in found:
            self.lines.setdefault("failed", line.number)
            _add_row(self.errors, found["error"], int(found["count"]))
        else:
            for name, text in found.items():
                first = self.texts.setdefault(name, text)
                if first is text:
                    self.lines.setdefault(name, line.number)
                elif first != text:
                    self.contradicted.add(name)

    def number(self, name: str) -> float | None:
        """A figure, or None when it was not printed or is no number."""
        return _finite(self.texts.get(name))

    def integer(self, name: str) -> int | None:
        """A count, or None when it was not printed."""
        text = self.texts.get(name, "")
        if text.isdecimal():
            return int(text)  # a float would round what is above 2 to the 53rd
        number = _finite(text)
        return None if number is None else int(number)

    def figures(self) -> dict[str, Any]:
        """Give what was read under the names of Output's attributes, converted."""
        said: dict[str, Any] = {
            name: text
            for name, text in self.texts.items()
            if name in {"server", "host", "path", "gave_up"} and text
        }
        said |= {name: self.integer(name) for name in _INTEGERS & self.texts.keys()}
        said |= {name: self.number(name) for name in _FLOATS & self.texts.keys()}
        return said | {
            "first_line": self.first_line,
            "last_line": self.last_line,
            "lines": self.lines
            | {_CONVERTED.get(name, name): at for name, at in self.lines.items()},
            "percentiles_ms": self.percentiles_ms,
            "by_status": self.by_status,
        }


@dataclass(frozen=True)
class Tool:
    """A load generator whose output is known."""

    name: str
    opening: str
    """Regular expression of the lines with which an output can begin."""
    patterns: tuple[re.Pattern[str], ...]
    """Lines of an output; their named groups are attributes of Output, or rows of a list:
    `percent` with `at` (a time with its unit), `status` or `error` with `count`."""
    output: Callable[[Facts], Output | None]
    """Makes the output of the facts; None when there is too little to speak of an output."""
    chatter: tuple[str, ...] = ()
    """Beginnings of lines that say nothing of use."""

    def read(self, text: str) -> dict[str, str] | None:
        """Give what a line of this tool says; None when the line isn't the tool's."""
        if text.startswith(self.chatter):
            return {}
        for pattern in self._by_start.get(text[:1], self._by_start[""]):
            if found := pattern.match(text):
                return {k: v for k, v in found.groupdict().items() if v is not None}
        return None

    @cached_property
    def _by_start(self) -> dict[str, tuple[re.Pattern[str], ...]]:
        """Group patterns by the character that they begin with; "" has those without one."""
        starts = [_literal_start(pattern) for pattern in self.patterns]
        return {
            start: tuple(
                pattern
                for pattern, its in zip(self.patterns, starts, strict=True)
                if its in {"", start}
            )
            for start in {"", *starts}
        }


def _literal_start(pattern: re.Pattern[str]) -> str:
    """Give the character that every match begins with, or "" when there isn't just one."""
    start = pattern.pattern[:1]
    return start if start.isalpha() and pattern.pattern[1:2] not in {"?", "*", "{"} else ""


def patterns(*lines: str) -> tuple[re.Pattern[str], ...]:
    """Compile lines, in which NUM stands for a number and INT for a count.

    Alternatives stand in brackets, so that a line's first letter is that of each match.
    """
    return tuple(
        re.compile(line.replace("NUM", NUMBER).replace("INT", rf"\d{{1,{COUNT_DIGITS}}}"))
        for line in lines
    )


def in_ms(text: str | None) -> float | None:
    """Read `1.85ms`, `563us` or `2 secs` as milliseconds; without a unit it is milliseconds."""
    found = _QUANTITY.match(text or "")
    if not found:
        return None
    number, unit = _finite(found[1]), found[2].lower() or "ms"
    unit_s = TIMES_S.get(_SPELLINGS.get(unit, unit))
    if number is None or unit_s is None:
        return None
    return number * (round(unit_s * 1e6) / 1000)  # so that milliseconds stay as they were printed


def in_bytes(text: str | None) -> float | None:
    """Read `62.64MB`, `253.91 KiB` or `1300000` as bytes; K, M and G are powers of 1024."""
    found = _QUANTITY.match(text or "")
    number = _finite(found[1]) if found else None
    if not found or number is None:
        return None
    scale = _BYTES.get(found[2].upper().rstrip("B").rstrip("I"))
    return None if scale is None else number * scale


def non_2xx(by_status: dict[str, int]) -> int | None:
    """Count the answers that were no success; None when no status was printed."""
    if not by_status:
        return None
    return sum(count for status, count in by_status.items() if not status.startswith("2"))


def _add_row(rows: dict[Key, Value], key: Key, value: Value | None) -> None:
    if value is not None and len(rows) < MOST_ROWS:
        rows.setdefault(key, value)


def _finite(text: str | None) -> float | None:
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
