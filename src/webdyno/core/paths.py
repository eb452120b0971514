"""Paths as they are written: one, or a pattern that stands for many; and what shows readiness."""

import re
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator, Field

RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}", re.ASCII)
MOST_PATHS = 100_000
MOST_LETTERS = 32 * 2**20
"""Of all paths together, however short the pattern is that they are written by."""

_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def spell_out(pattern: str) -> list[str]:
    """Return the paths that a pattern stands for, in counting order; a plain path is one.

    They are as they are asked for: what isn't ASCII is percent-encoded.
    Raise ValueError for more than one range, or one that doesn't count up.
    """
    before, numbers, after = _parts(percent_encode(pattern))
    return [f"{before}{number}{after}" for number in numbers]


def count_paths(pattern: str) -> int:
    """Return how many these are, as `spell_out` does, but without making them."""
    return len(_parts(pattern)[1])


def _parts(pattern: str) -> tuple[str, range | tuple[str], str]:
    """Return what stands for the numbers of a range, between what is around it."""
    before, *rest = RANGE.split(pattern)
    if not rest:
        return pattern, ("",), ""
    if len(rest) > 3:
        raise ValueError(f"{pattern!r:.80} has more than one range")
    first, last, after = int(rest[0]), int(rest[1]), rest[2]
    if not first <= last < first + MOST_PATHS:
        raise ValueError(f"{pattern!r:.80} should count up, to {MOST_PATHS} paths at most")
    return before, range(first, last + 1), after


def demand_few_paths(patterns: Iterable[str], what: str) -> None:
    """Raise ValueError where all that patterns stand for is too much for a load."""
    count = letters = 0
    for pattern in patterns:
        its = count_paths(pattern)
        count += its
        letters += its * len(percent_encode(pattern))
    if count > MOST_PATHS:
        raise ValueError(f"{what} are more than {MOST_PATHS} in all; ask for fewer")
    if letters > MOST_LETTERS:
        raise ValueError(f"{what} have more than {MOST_LETTERS} letters in all; ask for fewer")


def percent_encode(path: str) -> str:
    """Percent-encode what can't stand in a request as it is (RFC 3986); the rest stays.

    So does a percent sign that begins an encoded character: whoever wrote it has encoded the path.
    """
    path = _LONE_PERCENT.sub("%25", path)
    return re.sub(r"[^\x21-\x7e]+", lambda part: quote(part[0], errors="surrogatepass"), path)


def _can_be_asked_for(path: str) -> str:
    if not path.startswith(("/", "{{")) or " " in path or not path.isprintable():
        raise ValueError(f"a path starts with / and has no spaces (write %20), unlike {path!r:.80}")
    if "#" in path:
        raise ValueError(f"clients never send what follows a #, as in {path!r:.80}; leave it out")
    demand_few_paths([path], f"the paths of {path!r:.80}")
    return path


def _few_paths(patterns: list[str]) -> list[str]:
    demand_few_paths(patterns, "the paths")
    return patterns


WrittenPath = Annotated[str, AfterValidator(_can_be_asked_for)]
"""A path, or a pattern that stands for many."""

HEALTH = "grpc"


def _shows_readiness(text: str) -> str:
    return text if text == HEALTH else _can_be_asked_for(text)


ReadyPath = Annotated[str, AfterValidator(_shows_readiness)]
"""A path that shows that a server is ready, or `grpc` for gRPC's health protocol."""

WrittenPaths = Annotated[list[WrittenPath], Field(min_length=1), AfterValidator(_few_paths)]
"""What a load asks for."""
