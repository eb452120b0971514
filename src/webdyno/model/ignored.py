"""What may differ between the arms' answers: a pattern, or a place in JSON."""

import re
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

JSON_TOP = "$."
_JSON_PATH = re.compile(r"\$(\.[^.\[\]]+|\[(\d+|\*)\])+")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]")


def steps(path: str) -> list[str]:
    """Take a path such as `$.items[*].id` apart: items, *, id."""
    return [found[1] or found[2] for found in _STEP.finditer(path)]


def _ignored(what: str) -> str:
    if what.startswith(JSON_TOP):
        if not _JSON_PATH.fullmatch(what):
            raise ValueError(f"{what!r} is no path in JSON such as $.time or $.items[*].id")
        return what
    try:
        regex.compile(what)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{what!r} is no regular expression: {error}") from None
    return what


Ignored = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_ignored)]
