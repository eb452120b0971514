"""How a tool's output is described, and what is collected while its lines pass by."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from webdyno.model.quantities import TIMES_S
from webdyno.readers.lines import NumberedLine
from webdyno.readers.numbers import COUNT, NUMBER, as_count, as_float
from webdyno.readers.output import Output

MOST_ROWS = 100
"""Rows of percentiles, statuses or errors that are kept of one output."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_INTEGERS = {it.name for it in fields(Output) if "int" in str(it.type)}
_FLOATS = {it.name for it in fields(Output) if "float" in str(it.type)}

_SPELLINGS = {"msec": "ms", "milliseconds": "ms", "sec": "s", "secs": "s", "\u03bcs": "us"}
"""Tools' own words for units of time; the Greek letter looks like the micro sign."""

_MIXED = re.compile(rf"(?:(\d{{1,6}})h)?(?:(\d{{1,9}})m)?({NUMBER})s$")
"""`1m40.5s`, as Go prints durations."""

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
    "asked": "time_limit_s",
    "errors": "failed",
    "failed_of_old": "failed",
    "failed_of_new": "failed",
    "failed_or_none": "failed",
    "others": "failed",
    "errored": "failed",
    "codes": "by_status",
    "heads": "percentiles_ms",
    "checks_missed": "failed_checks",
    "started": "never_started",
}
"""Figures that tools print in units of their own -> the attribute that is made of them."""

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

_QUANTITY = re.compile(rf"({NUMBER})\s*([a-zA-Zµμ]*)")


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

    def add(self, line: NumberedLine, found: dict[str, str], *, replace: bool = False) -> None:
        """Note what a line says; the first to say something is believed, or with replace the last.

        A tool that prints the same table again and again means the last one.
        """
        self.last_line = line.number
        if replace:
            self.texts |= found
            self.lines |= dict.fromkeys(found, line.number)
            return
        if "percent" in found:
            self.lines.setdefault("percentiles_ms", line.number)
            _add_row(self.percentiles_ms, as_float(found["percent"]) or 0.0, in_ms(found["at"]))
        elif "status" in found:
            self.lines.setdefault("by_status", line.number)
            _add_row(self.by_status, found["status"], as_count(found["count"]))
        elif "error" in found:
            self.lines.setdefault("failed", line.number)
            _add_row(self.errors, found["error"], as_count(found["count"]))
        else:
            for name, text in found.items():
                first = self.texts.setdefault(name, text)
                if first is text:
                    self.lines.setdefault(name, line.number)
                elif first != text:
                    self.contradicted.add(name)

    def number(self, name: str) -> float | None:
        """A figure, or None when it was not printed or is no number."""
        return as_float(self.texts.get(name))

    def integer(self, name: str) -> int | None:
        """A count, or None when it was not printed."""
        return as_count(self.texts.get(name))

    def time_s(self, name: str) -> float | None:
        """A time in seconds, or None when it was not printed."""
        found = in_ms(self.texts.get(name))
        return None if found is None else found / 1000

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
    looks_like: str = ""
    """Name of the tool whose first line is the same."""
    sure_by: str = ""
    """Regular expression of the line that makes an output of `looks_like` one of this tool."""
    only_first: str = ""
    """Regular expression of lines that stand nowhere but at the beginning."""
    restart: str = ""
    """Where only some of the opening lines begin the next output, while one is under way: these."""
    parts_after: str = ""
    """Name of the figure after which only parts of the same run follow."""
    repeats: bool = False
    """Whether it prints its figures again and again while it runs, so that the last ones count."""

    def read(self, text: str) -> dict[str, str] | None:
        """Give what a line of this tool says; None when the line isn't the tool's."""
        if text.startswith(self.chatter):
            return {}
        for pattern in self._by_start.get(text[:1], self._by_start[""]):
            if found := pattern.match(text):
                return {k: v for k, v in found.groupdict().items() if v is not None}
        return None

    def begins_next(self, facts: Facts, text: str, found: dict[str, str]) -> bool:
        """Whether a line of the tool begins its next output, as it can't be of the present one."""
        if self.repeats:
            requests = as_count(found.get("requests"))
            return requests is not None and requests < (facts.integer("requests") or 0)
        if self.only_first and "requests" in facts.texts and re.match(self.only_first, text):
            return True
        if self.parts_after in facts.texts or not facts.texts.keys() & found.keys():
            return False
        return re.match(self.restart or self.opening, text) is not None

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
    return tuple(re.compile(line.replace("NUM", NUMBER).replace("INT", COUNT)) for line in lines)


def in_ms(text: str | None) -> float | None:
    """Read `1.85ms`, `563us`, `2 secs` or `1m40s` as milliseconds, which a bare number is too."""
    if mixed := _MIXED.fullmatch(text or ""):
        hours, minutes, seconds = (as_float(part or "0") or 0.0 for part in mixed.groups())
        return ((hours * 60 + minutes) * 60 + seconds) * 1000
    found = _QUANTITY.match(text or "")
    if not found:
        return None
    number, unit = as_float(found[1]), found[2].lower() or "ms"
    if number is not None and unit == "ns":
        return number / 1e6
    unit_s = TIMES_S.get(_SPELLINGS.get(unit, unit))
    if number is None or unit_s is None:
        return None
    return number * (round(unit_s * 1e6) / 1000)  # so that milliseconds stay as they were printed


def in_bytes(text: str | None, step: int = 1024) -> float | None:
    """Read `62.64MB`, `253.91 KiB` or `1300000` as bytes; K, M and G are powers of the step."""
    found = _QUANTITY.match(text or "")
    number = as_float(found[1]) if found else None
    if not found or number is None:
        return None
    unit = found[2].upper().rstrip("B").rstrip("I")
    return number * step ** _POWERS[unit] if unit in _POWERS else None


def non_2xx(by_status: dict[str, int]) -> int | None:
    """Count the answers that were no success; None when no status was printed."""
    if not by_status:
        return None
    return sum(count for status, count in by_status.items() if not status.startswith("2"))


def _add_row(rows: dict[Key, Value], key: Key, value: Value | None) -> None:
    if value is not None and len(rows) < MOST_ROWS:
        rows.setdefault(key, value)
