"""Any text as numbered lines of bounded length, without the decoration around them."""

from collections.abc import Iterator
from io import BufferedReader, TextIOWrapper
from typing import NamedTuple

from webdyno.model.mistake import Mistake
from webdyno.readers.decoration import plain

LONGEST_LINE = 20_000
"""Characters of a line that are read; what follows in the same line is skipped."""

MOST_CHARACTERS = 2**28
"""Characters of a text that are read: more is no report, and a pipe may never end."""


class NumberedLine(NamedTuple):
    """A line and its number, from 1 up."""

    number: int
    text: str


def read_lines(stream: BufferedReader) -> Iterator[NumberedLine]:
    """Decode a stream line by line; what is no text becomes replacement characters.

    Raise Mistake where the text is longer than anybody's report.
    """
    utf16 = stream.peek(2)[:2] in {b"\xff\xfe", b"\xfe\xff"}
    encoding = "utf-16" if utf16 else "utf-8-sig"
    text = TextIOWrapper(stream, encoding, errors="replace", newline="\n")
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
            raise Mistake(
                f"longer than {MOST_CHARACTERS // 2**20} million characters; give the part that "
                "has the outputs"
            )
    text.detach()  # the stream is the caller's to close
