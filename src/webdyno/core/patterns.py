"""What people write as patterns: regular expressions, and places in JSON."""

import re
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

JSON_TOP = "$."
MOST_IGNORED = 100
_JSON_PATH = re.compile(r"\$(\.[^.\[\]]+|\[(\d+|\*)\])+")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]")


def steps(path: str) -> list[str]:
    """Return the steps of a path: items, * and id of `$.items[*].id`."""
    return [step[1] or step[2] for step in _STEP.finditer(path)]


def regular_expression(text: str) -> str:
    """Return a text that is one; raise ValueError for another one."""
    try:
        regex.compile(text)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return text


def check_ignored(what: str) -> None:
    """Raise ValueError where it is neither a place in JSON nor a regular expression.

    That takes a tenth of a second where somebody wants it to, so it isn't done for each run's head.
    """
    if not what.startswith(JSON_TOP):
        regular_expression(what)


def _place_if_it_looks_like_one(what: str) -> str:
    if what.startswith(JSON_TOP) and not _JSON_PATH.fullmatch(what):
        raise ValueError(f"{what!r} is no path in JSON such as $.time or $.items[*].id")
    return what


Ignored = Annotated[
    list[
        Annotated[
            str,
            Field(min_length=1, max_length=1000),
            AfterValidator(_place_if_it_looks_like_one),
        ]
    ],
    Field(max_length=MOST_IGNORED),
]
"""What may differ in bodies."""
