"""Any text as numbered lines of bounded length, without the decoration around them."""

import html
import re
from collections.abc import Iterator
from io import BufferedReader, TextIOWrapper
from typing import NamedTuple

from webdyno.core.errors import UserError

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
