"""How a tool's output and command line are described, and what is collected as lines pass by."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from webdyno.core.base import TIMES_S
from webdyno.formats import Loop, Output
from webdyno.formats.text import (
    COUNT,
    NUMBER,
    Fields,
    NumberedLine,
    as_count,
    as_float,
    known,
    url_figures,
)

LENGTH = {"d": "time_limit_s", "duration": "time_limit_s"}
OF_HTTP = LENGTH | dict.fromkeys(("c", "connections", "concurrency"), "concurrency")
COUNTED = {"n": "requests", "requests": "requests"}

BODY = "H header headers m method b body d data t timeout"
TLS = "k insecure cert key cacert"


@dataclass(frozen=True)
class CommandLine:
    """A tool's options, and what it does without any."""

    options: Mapping[str, str]
    """Option without its dashes -> attribute of Command, or `minutes`, `script` and `url`."""
    no_matter: str
    """Options that change nothing of what an audit looks at. All others are named as unread."""
    other_names: tuple[str, ...] = ()
    """Programs that take the same options."""
    defaults: Mapping[str, int] = field(default_factory=dict)
    """Connections and requests of a tool that doesn't print them."""
    open_loop: bool = False
    """Whether it always keeps to a timetable."""
    users_vary: bool = False
    """Whether there may be more or fewer users than the command says, as they come and go."""

    @property
    def known(self) -> frozenset[str]:
        return frozenset({*self.options, *self.no_matter.split()})


MOST_ROWS = 100
"""Rows of percentiles, statuses or errors that are kept of one output."""

Figures = dict[str, Any]
"""Attributes of Output by name."""
Key = TypeVar("Key")
Value = TypeVar("Value")

_INTEGERS = {figure.name for figure in fields(Output) if "int" in str(figure.type)}
_FLOATS = {figure.name for figure in fields(Output) if "float" in str(figure.type)}

_SPELLINGS = {"msec": "ms", "milliseconds": "ms", "sec": "s", "secs": "s", "\u03bcs": "us"}
"""Tools' own words for units of time; the Greek letter looks like the micro sign."""

_MIXED = re.compile(rf"(?:(\d{{1,6}})h)?(?:(\d{{1,9}})m)?({NUMBER})s$")
"""`1m40.5s`, as Go prints durations."""

_SECONDS = {"took": "duration_s", "asked": "time_limit_s"}
_MILLISECONDS = {
    "mean": "mean_ms",
    "min": "min_ms",
    "max": "max_ms",
    "connect_max": "connect_max_ms",
}
"""Times that tools print with units of their own -> the attribute that has them."""

_MADE_OF = {
    **_SECONDS,
    **_MILLISECONDS,
    "transfer": "transfer_kib_s",
    "url": "host",
    "responses_2xx": "by_status",
    "heads": "percentiles_ms",
}
"""Texts of several tools that are no attributes -> the attribute that is made of them."""

_ROWS = {
    "percent": "percentiles_ms",
    "status": "by_status",
    "error": "failed",
    "part": "parts",
}
"""Texts that make a line the row of a list (`Tool.patterns`) -> what such rows show."""
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
    parts: dict[str, int] = field(default_factory=dict)
    """A count that is printed for each part of a whole, such as the connections of a thread."""
    contradicted: set[str] = field(default_factory=set)
    """Figures that were printed again with another value."""

    def add(self, line: NumberedLine, texts: dict[str, str], *, replace: bool = False) -> None:
        """Note what a line says; the first to say it is believed, or with `replace` the last."""
        self.last_line = line.number
        if replace and "count" not in texts:
            self.texts |= texts
            self.lines |= dict.fromkeys(texts, line.number)
            return
        if replace:
            for rows, name in ((self.by_status, "status"), (self.errors, "error")):
                rows.pop(texts.get(name, ""), None)
        row = next((name for name in _ROWS if name in texts), None)
        if row is None:
            self._add_texts(line, texts)
        else:
            self.lines.setdefault(_ROWS[row], line.number)
            self._add_row(row, texts)

    def _add_texts(self, line: NumberedLine, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            first = self.texts.setdefault(name, text)
            if first is text:
                self.lines.setdefault(name, line.number)
            elif first != text:
                self.contradicted.add(name)

    def _add_row(self, row: str, texts: dict[str, str]) -> None:
        many = as_count(texts.get("count", "0"))
        match row:
            case "percent":
                _keep(self.percentiles_ms, as_float(texts[row]) or 0.0, in_ms(texts["at"]))
            case "status":
                _keep(self.by_status, texts[row], many)
            case "error":
                _keep(self.errors, texts[row], many)
            case "part":
                _keep(self.parts, texts[row], many)
                self.texts |= {
                    name: text for name, text in texts.items() if name not in {row, "count"}
                }

    def number(self, name: str) -> float | None:
        """A figure, or None when it was not printed or is no number."""
        return as_float(self.texts.get(name))

    def integer(self, name: str) -> int | None:
        return as_count(self.texts.get(name))

    def time_s(self, name: str) -> float | None:
        """A time in seconds, or None when it was not printed."""
        time_ms = in_ms(self.texts.get(name))
        return None if time_ms is None else time_ms / 1000

    def times_ms(self, names: Mapping[float, str]) -> dict[float, float]:
        """Return the times that were printed under some names, such as percentiles."""
        return known({key: in_ms(self.texts.get(name)) for key, name in names.items()})

    def groups(self) -> Figures:
        """Return the counts of `1xx` to `5xx`, and of those that were no success; or nothing."""
        counts = {f"{group}xx": self.integer(f"responses_{group}xx") for group in "12345"}
        if counts["2xx"] is None:
            return {}
        by_status = {status: count for status, count in counts.items() if count}
        return {"by_status": by_status, "non_2xx": non_2xx(by_status) or 0}

    def figures(self, made_of: Mapping[str, str], bytes_step: int) -> Figures:
        """Return what was read under the names of Output's attributes, converted."""
        attributes = {**_MADE_OF, **made_of}
        texts = self.texts
        figures: Figures = url_figures(texts.get("url"))
        as_text = ("server", "host", "path", "protocol", "gave_up")
        figures |= {name: texts[name] for name in as_text if texts.get(name)}
        figures |= {name: self.integer(name) for name in _INTEGERS & texts.keys()}
        figures |= {name: self.number(name) for name in _FLOATS & texts.keys()}
        figures |= {name: self.time_s(text) for text, name in _SECONDS.items() if text in texts}
        for text, name in _MILLISECONDS.items():
            if text in texts:
                figures[name] = in_ms(texts[text])
        if (received := in_bytes(texts.get("read"), bytes_step)) is not None:
            figures["total_bytes"] = int(received)
        if (per_second := in_bytes(texts.get("transfer"), bytes_step)) is not None:
            figures["transfer_kib_s"] = per_second / 1024
        return figures | {
            "first_line": self.first_line,
            "last_line": self.last_line,
            "lines": self.lines
            | {attributes.get(name, name): line for name, line in self.lines.items()},
            "percentiles_ms": self.percentiles_ms,
            "by_status": self.by_status,
            "errors": self.errors,
        }


@dataclass(frozen=True)
class Tool:
    """A load generator whose output is known."""

    name: str
    opening: str
    """Regular expression of the lines with which an output can begin."""
    patterns: tuple[str, ...]
    """Lines of an output; their named groups are attributes of Output, texts that are converted
    (`took`, `asked`, `mean`, `min`, `max`, `connect_max`, `read`, `transfer`, `url`), rows of a
    list (`percent` with `at`, a time with its unit; `status`, `error` or `part` with `count`), or
    names of its own, of which `more` makes something."""
    loop: Loop | None = "closed"
    """The loop of all its runs, unless its figures say otherwise."""
    needed: tuple[str, ...] = ("requests", "throughput_rps")
    """Texts without which there is too little to speak of an output."""
    more: Callable[[Facts, Figures], Figures | None] = lambda *_: {}
    """Gives figures that follow from those read; None when these are too few for an output."""
    made_of: Mapping[str, str] = field(default_factory=dict)
    """Texts of this tool alone, or `parts` -> the attribute that `more` makes of them, which stands
    where they do."""
    read_json: Callable[[Fields], Figures | None] | None = None
    """Gives the figures of its JSON; None when that is the JSON of something else."""
    bytes_step: int = 1024
    """Bytes of its kB."""
    chatter: tuple[str, ...] = ()
    """Beginnings of lines that say nothing of use."""
    looks_like: str = ""
    """Name of the tool whose first line is the same."""
    sure_by: str = ""
    """Regular expression of the line that makes an output of `looks_like` one of this tool."""
    only_first: str = ""
    """Regular expression of lines that stand nowhere but at the beginning."""
    restart: str = ""
    """Regular expression of lines that begin the next output while one is under way, where these
    are fewer than the opening ones."""
    parts_after: str = ""
    """Name of the figure after which only parts of the same run follow."""
    repeats: bool = False
    """Whether it prints its figures again and again while it runs, so that the last ones count."""
    title: str = ""
    """Its name in a sentence, where that is spelt otherwise."""
    command: CommandLine | None = None
    """None where what is run stands in a file, not in its command."""

    def read(self, text: str) -> dict[str, str] | None:
        """Return what a line of this tool says; None when the line isn't the tool's."""
        if text.startswith(self.chatter):
            return {}
        for pattern in self._by_start.get(text[:1], self._by_start[""]):
            if match := pattern.match(text):
                return {k: v for k, v in match.groupdict().items() if v is not None}
        return None

    def output_of(self, facts: Facts) -> Output | None:
        """Return the output that the facts are; None when there is too little to speak of one."""
        if not facts.texts.keys() >= set(self.needed):
            return None
        figures = facts.figures(self.made_of, self.bytes_step)
        more = self.more(facts, figures)
        return None if more is None else self._make_output(figures | more)

    def json_output(
        self, parsed: Mapping[str, Any], first_line: int, last_line: int
    ) -> Output | None:
        """Return the output that an object in JSON is; None when it is something else."""
        figures = self.read_json(Fields(parsed)) if self.read_json else None
        lines = {"first_line": first_line, "last_line": last_line}
        return None if figures is None else self._make_output(lines | figures)

    def _make_output(self, figures: Figures) -> Output:
        usual: Figures = {"tool": self.name, "loop": self.loop}
        return Output(**usual | figures)

    def begins_next(self, facts: Facts, text: str, texts: dict[str, str]) -> bool:
        """Whether a line of the tool begins its next output, as it can't be of the present one."""
        if self.repeats and self.restart:
            done = facts.texts.keys() >= set(self.needed)
            return done and re.match(self.restart, text) is not None
        if self.repeats:
            requests = as_count(texts.get("requests"))
            return requests is not None and requests < (facts.integer("requests") or 0)
        begun = facts.texts.keys() - {"banner", *texts}
        if self.only_first and begun and re.match(self.only_first, text):
            return True
        if self.parts_after in facts.texts or not facts.texts.keys() & texts.keys():
            return False
        return re.match(self.restart or self.opening, text) is not None

    @cached_property
    def _by_start(self) -> dict[str, tuple[re.Pattern[str], ...]]:
        """Patterns by the letter that all their matches begin with; "" has those without one."""
        starts = [
            pattern[0] if pattern[0].isalpha() and pattern[1:2] not in {"?", "*", "{"} else ""
            for pattern in self.patterns
        ]
        compiled = [re.compile(pattern) for pattern in self.patterns]
        return {
            start: tuple(
                pattern for pattern, its in zip(compiled, starts, strict=True) if its in {"", start}
            )
            for start in {"", *starts}
        }


def patterns(*lines: str) -> tuple[str, ...]:
    """Return patterns of lines, in which NUM stands for a number and INT for a count.

    Alternatives stand in brackets, so that a line's first letter is that of each match. They are
    compiled when they are needed, as a run without such a tool would have to wait for that.
    """
    return tuple(line.replace("NUM", NUMBER).replace("INT", COUNT) for line in lines)


def in_ms(text: str | None) -> float | None:
    """Read `1.85ms`, `563us`, `2 secs` or `1m40s` as milliseconds, which a bare number is too."""
    if mixed := _MIXED.fullmatch(text or ""):
        hours, minutes, seconds = (as_float(part or "0") or 0.0 for part in mixed.groups())
        return ((hours * 60 + minutes) * 60 + seconds) * 1000
    match = _QUANTITY.match(text or "")
    if not match:
        return None
    number, unit = as_float(match[1]), match[2].lower() or "ms"
    if number is not None and unit == "ns":
        return number / 1e6
    unit_s = TIMES_S.get(_SPELLINGS.get(unit, unit))
    if number is None or unit_s is None:
        return None
    return number * (round(unit_s * 1e6) / 1000)  # so that milliseconds stay as they were printed


def in_bytes(text: str | None, step: int = 1024) -> float | None:
    """Read `62.64MB`, `253.91 KiB` or `1300000` as bytes; K, M and G are powers of the step."""
    match = _QUANTITY.match(text or "")
    number = as_float(match[1]) if match else None
    if not match or number is None:
        return None
    unit = match[2].upper().rstrip("B").rstrip("I")
    return number * step ** _POWERS[unit] if unit in _POWERS else None


def non_2xx(by_status: dict[str, int]) -> int | None:
    """Count the responses that were no success; None when no status was printed."""
    if not by_status:
        return None
    return sum(count for status, count in by_status.items() if not status.startswith("2"))


def _keep(rows: dict[Key, Value], key: Key, value: Value | None) -> None:
    if value is not None and len(rows) < MOST_ROWS:
        rows.setdefault(key, value)
