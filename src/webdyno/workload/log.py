"""A log's requests in columns: 31 bytes a request, whatever its lines hold."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class Bad(NamedTuple):
    """A line that couldn't be read."""

    file: str
    line: int
    why: str


@dataclass(frozen=True)
class LogSelection:
    """Which requests of a log."""

    methods: Collection[str] = ("GET", "HEAD")
    from_s: float = 0.0
    to_s: float = float("inf")
    """Since 1970; up to but not with this."""


class RequestKey(NamedTuple):
    """What requests are told apart by."""

    method: str
    path: str
    body: bytes = b""
    """What it sent, where that is known: only HAR files have it."""
    content_type: str = ""


@dataclass(frozen=True)
class Log:
    """A log's requests in order of time, and what isn't among them."""

    name: str
    asked: list[RequestKey]
    time_s: Floats
    asked_id: Whole
    client_id: Whole
    body_bytes: Whole
    status: Whole
    connection: Whole
    """1: first on its connection; 0: a later one; -1: the log doesn't tell."""
    took_s: Floats
    """Until it was answered; NaN where the log doesn't tell."""
    lines: int
    bad: list[Bad]
    """The first ones."""
    left_out: dict[str, int]
    hidden: dict[str, int]
    notes: list[str] = field(default_factory=list)
    """What a reader of the results has to know."""

    def __len__(self) -> int:
        """How many requests."""
        return len(self.time_s)

    def by_asked(self) -> Iterator[tuple[RequestKey, Whole]]:
        """Give all that was asked for, each with the numbers of its requests."""
        order = np.argsort(self.asked_id, kind="stable")
        bounds = np.searchsorted(self.asked_id[order], np.arange(len(self.asked) + 1))
        for number, asked in enumerate(self.asked):
            yield asked, order[bounds[number] : bounds[number + 1]]
