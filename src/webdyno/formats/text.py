"""Texts that tools print and people retype: their lines without decoration, numbers, URLs, JSON.

All expressions are bounded, so that no line makes a number that is no number any more, and none
matches the beginning of a longer number.
"""

import html
import re
from collections.abc import Iterator, Mapping
from io import BufferedReader, TextIOWrapper
from typing import Any, NamedTuple, Self, TypeVar

from webdyno.core.errors import UserError
from webdyno.core.tables import as_table

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)")
_BLANKS = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"
)
_CONTROL: dict[int, str | None] = (
    {code: " " for code in range(32) if chr(code) != "\t"}
    | {127: " "}
    | {ord(blank): " " for blank in _BLANKS}
    | {ord(nothing): None for nothing in "\u200b\u2060\ufeff"}
)
_GROUPS = re.compile(
    r"(?<![\d.,])[1-9]\d{0,2}(?:[\u00a0\u2007\u2009\u202f]\d{3}){1,6}(?![\d\u00a0\u2007\u2009\u202f])"
)
"""Thousands that a narrow or unbreakable blank separates."""

_TAG = re.compile(
    r"</?(?:a|b|blockquote|br|code|div|em|font|i|kbd|li|p|pre|samp|span|strong|table|tbody|td|th|"
    r"thead|tr|tt|ul)\b[^<>]{0,500}>",
    re.IGNORECASE,
)
_CELL = re.compile(r"</t[dh]>\s*(?=<t[dh])", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")

_EMPHASIS = re.compile(r"\*\*([^*\s](?:[^*]{0,300}[^*\s])?)\*\*")
"""What somebody made bold in an output."""

_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_LOG = re.compile(
    r"(?:[^\t]{1,100}\t[^\t]{1,100}\t)?"  # job and step, as `gh run view --log` prints them
    rf"(?:{_STAMP}|\[{_STAMP}\] [\w.-]{{1,80}}/[A-Z]{{4,8}}/[\w.]{{1,60}}:)"
    r"(?: (?:stdout|stderr) [FP]| \d\d[OE][+ ]?)?"
    r"(?: [A-Z]{4,5} (?:\[[\w-]{1,40}\] )?[\w.]{1,60}:)?(?: |$)"
)
"""A time stamp of GitHub Actions, GitLab, docker or Kubernetes; what Locust and log4j add to it."""

_SYSLOG = re.compile(
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./@-]{1,64}(?:\[\d{1,9}\])?: ?"
)

_LEVEL = re.compile(r"\[(?:INFO|info|DEBUG|debug|stdout)\] ")

_COMPOSE = re.compile(r"[a-z0-9][\w.-]{0,60}[-_]\d{1,3} {1,60}\|(?: |$)")
"""The name of a service's container before each line of its log."""

_FIGURES_ONLY = re.compile(r"[\d\s.,%|+-]+$")

_LISTING_START = frozenset(">0123456789")
_LISTING = re.compile(r"(?:>\s+)*(?:\d{1,4}\.(?:\s+|$))?")
"""Quote marks, and the line numbers of a printed listing: `115.   Document Length: …`."""
_GAP = re.compile(r"[ \t]{201,}")
"""Wider than between any columns; patterns look at each blank again."""
LONGEST_LINE = 20_000
"""Characters of a line that are read; what follows in the same line is skipped."""
MOST_CHARACTERS = 2**28
"""Characters of a text that are read: more is no report, and a pipe may never end."""


def plain(raw: str) -> str:
    """Take decoration off a line: logs' prefixes, colours, overwritten progress, quotes, HTML."""
    text = raw.strip()
    if not text.isprintable():
        # A program that rewrites its line ends what it overwrites with a carriage return.
        text = _ESCAPES.sub("", text).rpartition("\r")[2]
        text = _blanks(text).strip()
    if "<" in text or "&" in text:
        text = _TAG.sub("", _CELL.sub(" | ", text))
        if _ENTITY.search(text):
            text = _blanks(html.unescape(text))
        text = text.strip()
    text = _without_prefix(text)
    text = _GAP.sub(" " * 200, text)
    if "**" in text:
        text = _EMPHASIS.sub(r"\1", text)
    if text[:1] in _LISTING_START and (match := _LISTING.match(text)):
        return text[match.end() :]
    return text


def _blanks(text: str) -> str:
    grouped = _GROUPS.sub(lambda match: re.sub(r"\D", ",", match[0]), text)
    return grouped.translate(_CONTROL)


def _without_prefix(text: str) -> str:
    first = text[:1]
    if (first.isdigit() or first == "[" or "\t" in text) and (match := _LOG.match(text)):
        text = text[match.end() :].lstrip()
    if ":" in text[9:15] and (match := _SYSLOG.match(text)):
        text = text[match.end() :].lstrip()
    if text[:1] == "[" and (match := _LEVEL.match(text)):
        text = text[match.end() :].lstrip()
    if "|" in text and (match := _COMPOSE.match(text)):
        rest = text[match.end() :].lstrip()
        if not (rest and _FIGURES_ONLY.match(rest)):  # else it is a row of a table
            return rest
    return text


class NumberedLine(NamedTuple):
    """A line and its number, from 1 up."""

    number: int
    text: str


def _encoding(start: bytes) -> str:
    """Name the encoding by the first bytes: PowerShell writes UTF-16, and appends it unmarked."""
    if start[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return "utf-16"
    if len(start) == 4 and start[0] and start[2] and not start[1] and not start[3]:
        return "utf-16-le"
    return "utf-8-sig"


def read_lines(stream: BufferedReader) -> Iterator[NumberedLine]:
    """Decode a stream line by line; raise UserError where it is longer than anybody's report."""
    text = TextIOWrapper(stream, _encoding(stream.peek(4)[:4]), errors="replace", newline="\n")
    number = size = 0
    while raw := text.readline(LONGEST_LINE):
        number += 1
        size += len(raw)
        yield NumberedLine(number, plain(raw))
        while not raw.endswith("\n") and (raw := text.readline(LONGEST_LINE)):
            size += len(raw)
            if size > MOST_CHARACTERS:
                break
        if size > MOST_CHARACTERS:
            raise UserError(
                f"longer than {MOST_CHARACTERS // 2**20} million characters; give the part that "
                "has the outputs"
            )
    text.detach()  # the stream is the caller's to close


_ENDS = r"(?![.,]?\d)"

NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d{1,20})?|\d{1,18}(?:\.\d{0,20}|,\d{1,20})?)" + _ENDS
"""A measurement, 1234.5 or 1,234.5 or 1234,5: a comma separates thousands before exactly three
digits, else decimals."""

COUNT = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,6}|[1-9]\d{0,2}(?:\.\d{3}){1,6}|\d{1,20})" + _ENDS
"""A count: it has no decimals, so a point can only separate thousands."""

MOST_IN_TEXT = 1e20
"""No figure in a cell is larger, so that sums and products of them are numbers."""
DIGITS = 21
"""Most digits of such a number."""

MOST = 1e15
"""No figure in JSON is larger; JSON would have `Infinity` as well."""

_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_GROUPED_COUNT = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
_URL = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[^/:\s\[\]]{1,255})"
    r"(?::(?P<port>\d{1,5})(?!\d))?(?P<path>/\S*)?"
)


def as_float(text: str | None) -> float | None:
    """Read a measurement; None where there is none."""
    text = text or ""
    text = text.replace(",", "") if _GROUPED.fullmatch(text) else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < MOST_IN_TEXT else None  # neither is NaN


def as_count(text: str | None) -> int | None:
    """Read a count exactly; None where there is none."""
    text = text or ""
    if _GROUPED_COUNT.fullmatch(text):
        text = re.sub(r"[.,]", "", text)
    if text.isdecimal() and len(text) < DIGITS:
        return int(text)  # a float would round what is above 2 to the 53rd
    number = as_float(text)
    return None if number is None else int(number)


def amount(value: object, scale: float = 1) -> float | None:
    """Return a measurement in JSON, times a unit; None for what is none, or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * scale if 0 <= value < MOST else None


Key = TypeVar("Key")
Value = TypeVar("Value")


def known(values: Mapping[Key, Value | None]) -> dict[Key, Value]:
    """Return the entries that have a value."""
    return {key: value for key, value in values.items() if value is not None}


class Fields(dict[str, Any]):
    """An object in JSON that anybody may have made: what isn't there, or is none, is None."""

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the fields of an object; none of anything else."""
        return cls(as_table(value))

    def inside(self, *path: str) -> "Fields":
        """Return the object at the end of a path of keys; an empty one where there is none."""
        inner = self
        for key in path:
            inner = Fields.of(inner.get(key))
        return inner

    def objects(self, key: str) -> "list[Fields]":
        """Return the objects of a list."""
        value = self.get(key)
        return [Fields.of(each) for each in value] if isinstance(value, list) else []

    def amount(self, *path: str, scale: float = 1) -> float | None:
        """Return a measurement, times a unit."""
        *outer, key = path
        return amount(self.inside(*outer).get(key), scale)

    def count(self, *path: str) -> int | None:
        """Return a count; some tools write counts with decimals."""
        number = self.amount(*path)
        return None if number is None else int(number)

    def counts(self, key: str) -> dict[str, int]:
        """Return the counts of an object by name."""
        rows = self.inside(key)
        return known({name: rows.count(name) for name in rows})

    def counts_by_status_group(self, key: str) -> dict[str, int]:
        """Return the responses by group, such as `2xx`, by a key with `{}` for its digit."""
        groups = {f"{digit}xx": self.count(key.format(digit)) for digit in "12345"}
        return {group: responses for group, responses in groups.items() if responses}

    def amounts_at(self, names: Mapping[float, str], scale: float = 1) -> dict[float, float]:
        """Return the measurements under some names, such as percentiles."""
        return known({key: self.amount(name, scale=scale) for key, name in names.items()})


def url_figures(url: object) -> dict[str, Any]:
    """Return the host, port and path of a URL, as Output calls them, as far as it says them."""
    match = _URL.match(url.strip("\"'`")) if isinstance(url, str) else None
    if not match:
        return {}
    said = {name: match[name].strip("[]") for name in ("host", "path") if match[name]}
    port = match["port"] or ("443" if match["scheme"] == "https" else None)
    return said | ({"port": int(port)} if port else {})
