"""What two arms' bodies differ in: shown as a diff, without what may differ."""

import json
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

import regex

from webdyno.model.mistake import Mistake
from webdyno.model.records import Answer
from webdyno.model.request import JSON_TOP, steps

MOST_LINES, MOST_LETTERS = 8, 100
CUT_LETTERS = 40
"""So many are shown before the first difference of two long lines."""
WITHIN_S = 5.0
INSTEAD = "…"


def without_ignored(body: bytes, ignored: Sequence[str]) -> bytes:
    """Give a body without what may differ; raise Mistake for a pattern that takes for ever."""
    for what in ignored:
        if what.startswith(JSON_TOP):
            body = _without_value(body, steps(what))
            continue
        try:
            text = regex.sub(
                what, INSTEAD, body.decode("utf-8", "surrogateescape"), timeout=WITHIN_S
            )
        except TimeoutError:
            raise Mistake(f"ignore: the pattern {what!r} takes for ever; make it simpler") from None
        body = text.encode("utf-8", "surrogateescape")
    return body


def with_differences(answers: Mapping[str, list[Answer]]) -> dict[str, list[Answer]]:
    """Tell what is other in bodies than in the first arm's, and drop the bodies."""
    first, *_ = answers.values() or [[]]
    return {
        arm: [
            answer.replace(
                body=b"",
                unlike=_difference(first[at].body, answer.body) if at < len(first) else [],
            )
            for at, answer in enumerate(mine)
        ]
        for arm, mine in answers.items()
    }


def _difference(one: bytes, other: bytes) -> list[str]:
    """Give lines of a diff, those that differ alone; lines of JSON are its values."""
    if one == other:
        return []
    before, after = _lines(one), _lines(other)
    lines = [
        line
        for line in unified_diff(before, after, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    begin = _first_difference(before, after)
    shown = [line[0] + " " + _cut(line[1:], begin) for line in lines[:MOST_LINES]]
    return [*shown, *([INSTEAD] if len(lines) > MOST_LINES else [])]


def _lines(body: bytes) -> list[str]:
    try:
        return json.dumps(json.loads(body), indent=1, ensure_ascii=False).splitlines()
    except ValueError:
        return body.decode("utf-8", "replace").splitlines()


def _first_difference(before: Sequence[str], after: Sequence[str]) -> int:
    """Give the place in the first unlike lines where they begin to be so."""
    for one, other in zip(before, after, strict=False):
        if one != other:
            same = (
                at for at, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1
            )
            return next(same, min(len(one), len(other)))
    return 0


def _cut(line: str, at: int) -> str:
    """Show a long line around a place, and nothing that a terminal would obey."""
    line = "".join(letter if letter.isprintable() else INSTEAD for letter in line)
    if len(line) <= MOST_LETTERS:
        return line
    begin = max(0, at - CUT_LETTERS)
    return (INSTEAD if begin else "") + line[begin : begin + MOST_LETTERS] + INSTEAD


def _without_value(body: bytes, path: Sequence[str]) -> bytes:
    try:
        whole = json.loads(body)
    except ValueError:
        return body
    _drop(whole, path)
    return json.dumps(whole, ensure_ascii=False).encode()


def _drop(node: Any, path: Sequence[str]) -> None:  # noqa: ANN401 (JSON)
    """Put a mark in the place of values, so that it is still told where one is missing."""
    step, *rest = path
    if isinstance(node, list):
        keys: list[Any] = [at for at in range(len(node)) if step in {"*", str(at)}]
    else:
        keys = [key for key in node if step in {"*", key}] if isinstance(node, dict) else []
    for key in keys:
        if rest:
            _drop(node[key], rest)
        else:
            node[key] = INSTEAD
