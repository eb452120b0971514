"""How bodies of variants differ from the baseline's: lines of a diff, and fields of JSON."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webdyno.core.hiding import SECRETS, hidden
from webdyno.core.records import Response
from webdyno.core.text import CUT, line_diff

MOST_LINES, MOST_LETTERS, MOST_FIELDS = 8, 100, 50
CUT_LETTERS = 40
"""Number of letters shown before the first difference of two long lines."""
A_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:|$)|1[6-9]\d{8}(?:\d{3})?(?:\.\d+)?$")
"""A date, with a time or without, or the seconds or milliseconds since 1970."""


def with_differences(responses: Mapping[str, list[Response]]) -> dict[str, list[Response]]:
    """Report what is other in bodies than in the baseline's, and drop the bodies."""
    first, *_ = responses.values() or [[]]
    return {
        variant: [
            _compare_body(first[place].body if place < len(first) else None, response)
            for place, response in enumerate(mine)
        ]
        for variant, mine in responses.items()
    }


def _compare_body(baseline: bytes | None, response: Response) -> Response:
    body = response.body
    if baseline is None or body == baseline:
        return response.replace(body=b"")
    before, after = fields_in(baseline), fields_in(body)
    both = before and after  # else it isn't JSON
    others: dict[str, bool] = {}
    for place, are_times in _other_values(*map(json.loads, (baseline, body))) if both else ():
        others[place] = others.get(place, True) and are_times
    return response.replace(
        body=b"",
        unlike=_difference(baseline, body),
        fields_more=sorted(after - before)[:MOST_FIELDS] if both else [],
        fields_less=sorted(before - after)[:MOST_FIELDS] if both else [],
        fields_other=sorted(others)[:MOST_FIELDS],
        others_are_times=bool(others) and all(others.values()),
    )


def _other_values(one: object, other: object) -> Iterator[tuple[str, bool]]:
    """Return the places of values of JSON that differ, and whether both are times."""
    left: list[tuple[str, Any, Any]] = [("", one, other)]
    while left:
        outer, mine, theirs = left.pop()
        match mine, theirs:
            case dict(), dict():
                names = mine.keys() & theirs.keys()
                left += [(f"{outer}{_cut(name, 0)}.", mine[name], theirs[name]) for name in names]
            case list(), list():
                left += [(f"{outer}*.", *pair) for pair in zip(mine, theirs, strict=False)]
            case _ if mine != theirs:
                are_times = all(A_TIME.match(str(value)) for value in (mine, theirs))
                yield outer.removesuffix("."), are_times


def fields_in(body: bytes) -> set[str]:
    """Return the places of all fields of JSON; those of a list's items are one each."""
    try:
        left: list[tuple[str, Any]] = [("", json.loads(body))]
    except (ValueError, RecursionError):
        return set()
    fields = set[str]()
    while left:
        outer, node = left.pop()
        match node:
            case dict():
                inner = [(f"{outer}{_cut(name, 0)}", value) for name, value in node.items()]
                fields.update(place for place, _ in inner)
                left += [(f"{place}.", value) for place, value in inner]
            case list():
                left += [(f"{outer}*.", item) for item in node]
    return fields


def _difference(one: bytes, other: bytes) -> list[str]:
    """Return lines of a diff, those that differ alone; lines of JSON are its values."""
    if one == other:
        return []
    before, after = _lines(one), _lines(other)
    lines = [line for line in line_diff(before, after) if not line.startswith(("---", "+++", "@@"))]
    begin = _first_difference(before, after)
    shown = [line[0] + " " + _cut(line[1:], begin) for line in lines[:MOST_LINES]]
    return [*shown, *([CUT] if len(lines) > MOST_LINES else [])]


def _lines(body: bytes) -> list[str]:
    """Return a body's lines without secrets, of which a line that is cut could show the end."""
    try:
        text = json.dumps(json.loads(body), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = SECRETS.hidden(body).decode("utf-8", "replace")
    return hidden(text).splitlines()


def _first_difference(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the place in the first unlike lines where they begin to be so."""
    for one, other in zip(before, after, strict=False):
        if one != other:
            same = (
                place
                for place, pair in enumerate(zip(one, other, strict=False))
                if len(set(pair)) > 1
            )
            return next(same, min(len(one), len(other)))
    return 0


def _cut(line: str, place: int) -> str:
    """Show a long line around a place, and nothing that a terminal would obey."""
    line = "".join(letter if letter.isprintable() else CUT for letter in hidden(line))
    if len(line) <= MOST_LETTERS:
        return line
    begin = max(0, place - CUT_LETTERS)
    return (CUT if begin else "") + line[begin : begin + MOST_LETTERS] + CUT
