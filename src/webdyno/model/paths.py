"""Paths as people write them: `/many/{1..2000}.txt` for many, `/hällo.txt` with any letters."""

import re
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
MOST_PATHS = 100_000


def spell_out(pattern: str) -> list[str]:
    """Give the paths that a pattern stands for, in counting order; a plain path is one.

    They are as they are asked for: what isn't ASCII is percent-encoded.
    Raise ValueError for more than one range, or one that doesn't count up.
    """
    before, *rest = RANGE.split(pattern)
    if not rest:
        return [encoded(pattern)]
    if len(rest) > 3:
        raise ValueError(f"{pattern!r} has more than one range")
    first, last, after = int(rest[0]), int(rest[1]), rest[2]
    if not first <= last < first + MOST_PATHS:
        raise ValueError(f"{pattern!r} should count up, to {MOST_PATHS} paths at most")
    before, after = encoded(before), encoded(after)
    return [f"{before}{number}{after}" for number in range(first, last + 1)]


def encoded(path: str) -> str:
    """Percent-encode what can't stand in a request as it is (RFC 3986); the rest stays.

    A percent sign stays too: a path may have been encoded by who wrote it.
    """
    return re.sub(r"[^\x21-\x7e]+", lambda part: quote(part[0], errors="surrogatepass"), path)


def spell_out_all(patterns: Iterable[str]) -> list[str]:
    """Give the paths that several patterns stand for, one pattern after the other."""
    return [path for pattern in patterns for path in spell_out(pattern)]


def _counts_up(pattern: str) -> str:
    spell_out(pattern)
    return pattern


WrittenPath = Annotated[str, AfterValidator(_counts_up)]
"""A path, or a pattern that stands for many."""
