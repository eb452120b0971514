"""Users that log in: what goes into their requests, and what is taken from responses."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from webdyno.core.base import Model

PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[^{}|\s]+)?)\s*\}\}")
"""A place that a user's value fills: `{{token}}`, `{{user.password}}`."""
VALUE_NAME = r"^[A-Za-z_][A-Za-z0-9_-]*$"
ValueName = Annotated[str, Field(pattern=VALUE_NAME)]
MOST_ROWS = 100_000
Row = dict[str, str]


class Capture(Model):
    """What of a response becomes a value: one of these."""

    model_config = ConfigDict(
        serialize_by_alias=True, validate_by_name=True, validate_by_alias=True
    )

    css: str | None = None
    """Selects the first element: names, `#id`, `.class`, `[attribute=value]`, one within the
    other."""
    attribute: str | None = None
    """With css: which attribute; by default an input's value, a meta element's content, else the
    text."""
    regex: str | None = None
    """The first group, or all that it matches."""
    json_: Annotated[str, Field(pattern=r"^\$")] | None = Field(default=None, alias="json")
    """A place in JSON: `$.items[0].id`."""
    header: str | None = None
    """A header's value."""
    cookie: str | None = None
    """A cookie's value."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = (self.css, self.regex, self.json_, self.header, self.cookie)
        if sum(source is not None for source in sources) != 1:
            raise ValueError("capture takes one of css, regex, json, header, cookie")
        if self.attribute is not None and self.css is None:
            raise ValueError("attribute is for css")
        return self


class Values(Model):
    """Where values come from that no response gives: one of these."""

    file: str | None = None
    """CSV with a line of names, or JSON lines: `{{NAME.COLUMN}}`. Read when the run starts, not
    kept with it."""
    sha256: str | None = None
    """Of the file, as a run keeps it."""
    rows: Annotated[list[Row], Field(min_length=1, max_length=MOST_ROWS)] | None = None
    """The same, written here; `${env:NAME}` stands for a secret."""
    each: Literal["user", "turn", "random"] = "user"
    """Who gets another row: each user for good; each flow in turn, or at random."""
    counter: int | None = None
    """Counts up from here, flow by flow."""
    choose: Annotated[list[str], Field(min_length=1)] | None = None
    """One of these for each flow."""
    random: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    """A whole number between these for each flow."""
    unique: bool = False
    """16 hexadecimal digits that never recur."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        unique = self.unique or None
        sources = (self.file, self.rows, self.counter, self.choose, self.random, unique)
        if sum(source is not None for source in sources) != 1:
            raise ValueError("values come from one of file, rows, counter, choose, random, unique")
        if self.each != "user" and self.file is None and self.rows is None:
            raise ValueError("each is for file and rows")
        if self.random is not None and self.random[0] > self.random[1]:
            raise ValueError("random should be [least, most]")
        if self.rows is not None and len({tuple(row) for row in self.rows}) > 1:
            raise ValueError("all rows need the same keys in the same order")
        return self


def places(texts: Iterable[str]) -> list[str]:
    """Return the values that texts have places for, each once."""
    return list(dict.fromkeys(name for text in texts for name in PLACE.findall(text)))


def unknown_place(
    asked: Sequence[str], values: Mapping[str, Values], *captured: Set[str]
) -> str | None:
    """Return the first place that nothing fills; columns of files are checked later."""
    for name in asked:
        table, dot, column = name.partition(".")
        source = values.get(table)
        if any(name in each for each in captured):
            continue
        if source and not dot and source.file is None and source.rows is None:
            continue
        if source and dot and (source.file or column in (source.rows or [{}])[0]):
            continue
        return name
    return None
