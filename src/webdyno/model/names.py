"""Names and titles: text that stands in tables, file names and command lines."""

from typing import Annotated

from pydantic import AfterValidator

LONGEST = 100


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(
            f"{text!r:.60} has a line break or another control character; leave it out"
        )
    return text


def _name(text: str) -> str:
    if not text or text != text.strip():
        raise ValueError(f"{text!r:.60} is no name: it is empty, or has a space at an end")
    if len(text) > LONGEST:
        raise ValueError(f"{text!r:.60} … is too long a name: {LONGEST} characters are enough")
    return _one_line(text)


OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text that can be printed in one line."""

Name = Annotated[str, AfterValidator(_name)]
"""A name that people give, such as an arm's."""
