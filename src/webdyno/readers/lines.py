"""Any text as numbered lines of bounded length, without the decoration that quoting gives them."""

import re
from collections.abc import Iterator
from io import BufferedReader, TextIOWrapper
from typing import NamedTuple

LONGEST_LINE = 20_000
"""Characters of a line that are read; what follows in the same line is skipped."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CONTROL = {code: " " for code in range(32) if chr(code) != "\t"} | {127: " "}
_DECORATION = frozenset(">0123456789")
_LISTING = re.compile(r"(?:>\s+)*(?:\d{1,4}\.(?:\s+|$))?")
"""Quote marks, and the line numbers of a printed listing: `115.   Document Length: …`."""


class Line(NamedTuple):
    """A line and its number, from 1 up."""

    number: int
    text: str


def read_lines(stream: BufferedReader) -> Iterator[Line]:
    """Decode a stream line by line; what is no text becomes replacement characters."""
    utf16 = stream.peek(2)[:2] in {b"\xff\xfe", b"\xfe\xff"}
    encoding = "utf-16" if utf16 else "utf-8-sig"
    text = TextIOWrapper(stream, encoding, errors="replace", newline="\n")
    number = 0
    while raw := text.readline(LONGEST_LINE):
        number += 1
        yield Line(number, plain(raw))
        while not raw.endswith("\n") and (raw := text.readline(LONGEST_LINE)):
            pass
    text.detach()  # the stream is the caller's to close


def plain(raw: str) -> str:
    """Take decoration off a line: colours, overwritten progress, quote marks, line numbers."""
    text = raw.strip()
    if not text.isprintable():
        # A program that rewrites its line ends what it overwrites with a carriage return.
        text = _ESCAPES.sub("", text).rpartition("\r")[2].translate(_CONTROL).strip()
    if text[:1] in _DECORATION and (found := _LISTING.match(text)):
        return text[found.end() :]
    return text
