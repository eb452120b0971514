"""Reads a log into columns, a line at a time: 31 bytes a request, whatever its lines hold."""

import gzip
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webdyno.model.mistake import Mistake
from webdyno.workload.har import read_har
from webdyno.workload.lines import Access, Unreadable, read_line
from webdyno.workload.privacy import Privacy

LONGEST_LINE = 64 * 1024
LONGEST_TARGET = 2_048
MOST_NAMED = 5
MOST_REQUESTS = 10_000_000
MOST_PATHS = 200_000
"""Different ones; those that first come later are left out, and counted."""
MOST_CLIENTS = 5_000_000
_HAR = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

UNREADABLE = "lines that are no request"
METHOD, BEFORE, AFTER = "of other methods", "before --from", "after --to"
FAILED, NO_PATH, TOO_MANY = (
    "answered with 5xx, or not at all",
    "for what is no path",
    f"for further paths than {MOST_PATHS:,}",
)


class Bad(NamedTuple):
    """A line that couldn't be read."""

    line: int
    why: str


@dataclass(frozen=True)
class Wanted:
    """Which requests of a log."""

    methods: Collection[str] = ("GET", "HEAD")
    from_s: float = 0.0
    to_s: float = float("inf")
    """Since 1970; up to but not with this."""


class Asked(NamedTuple):
    """What requests are told apart by."""

    method: str
    path: str


@dataclass(frozen=True)
class Log:
    """A log's requests in order of time, and what isn't among them."""

    name: str
    asked: list[Asked]
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

    def __len__(self) -> int:
        """How many requests."""
        return len(self.time_s)

    def by_asked(self) -> Iterator[tuple[Asked, Whole]]:
        """Give all that was asked for, each with the numbers of its requests."""
        order = np.argsort(self.asked_id, kind="stable")
        bounds = np.searchsorted(self.asked_id[order], np.arange(len(self.asked) + 1))
        for number, asked in enumerate(self.asked):
            yield asked, order[bounds[number] : bounds[number + 1]]


def read_log(path: Path, wanted: Wanted, privacy: Privacy) -> Log:
    """Read a log, `.gz` as well; raise Mistake where there is no request in it."""
    reading = _Reading(wanted, privacy)
    try:
        with _opened(path) as file:
            begins = file.peek(512)[:512].removeprefix(_BYTE_ORDER_MARK)
            if _HAR.match(begins):
                for access in read_har(file, str(path)):
                    reading.take(access)
            else:
                _read_lines(file, reading)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Mistake(f"{path}: can't be read: {why.lower()}") from None
    return reading.log(path)


def _opened(path: Path) -> Any:  # noqa: ANN401 (two kinds of buffered files)
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _read_lines(file: Any, reading: "_Reading") -> None:  # noqa: ANN401
    for number, line in enumerate(_lines(file), 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        try:
            if len(line) > LONGEST_LINE:
                raise Unreadable(f"is longer than {LONGEST_LINE // 1024} KiB")  # noqa: TRY301
            if line.strip():
                reading.take(read_line(line))
        except Unreadable as why:
            reading.note_bad(number, str(why))
        reading.lines = number
        if len(reading) >= MOST_REQUESTS:
            raise Mistake(
                f"line {number} of the log: {MOST_REQUESTS:,} requests are the most; choose some "
                "hours with --from and --to"
            )


def _lines(file: Any) -> Iterator[bytes]:  # noqa: ANN401
    """Give lines; of one that is too long the beginning, one byte longer than the longest."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1)


@dataclass
class _Reading:
    """The columns as they grow."""

    wanted: Wanted
    privacy: Privacy
    lines: int = 0
    bad: list[Bad] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    times: "array[float]" = field(default_factory=lambda: array("d"))
    asked_ids: "array[int]" = field(default_factory=lambda: array("I"))
    clients: "array[int]" = field(default_factory=lambda: array("I"))
    sizes: "array[int]" = field(default_factory=lambda: array("q"))
    statuses: "array[int]" = field(default_factory=lambda: array("H"))
    connections: "array[int]" = field(default_factory=lambda: array("b"))
    took_s: "array[float]" = field(default_factory=lambda: array("f"))

    def __post_init__(self) -> None:
        self._methods = {it.encode() for it in self.wanted.methods}
        self._as_logged: dict[tuple[bytes, bytes], int | None] = {}
        self._asked: dict[Asked, int] = {}
        self._client_ids: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.times)

    def note_bad(self, line: int, why: str) -> None:
        self.left_out[UNREADABLE] += 1
        if len(self.bad) < MOST_NAMED:
            self.bad.append(Bad(line, why))

    def take(self, access: Access) -> None:
        """Add a request, if it is wanted."""
        if access.method not in self._methods:
            self.left_out[METHOD] += 1
        elif access.time_s < self.wanted.from_s:
            self.left_out[BEFORE] += 1
        elif access.time_s >= self.wanted.to_s:
            self.left_out[AFTER] += 1
        elif not 200 <= access.status < 500:
            self.left_out[FAILED] += 1
        elif (asked := self._id(access.method, access.target)) is not None:
            self.times.append(access.time_s)
            self.asked_ids.append(asked)
            self.clients.append(self._client(access.client))
            self.sizes.append(access.body_bytes)
            self.statuses.append(access.status)
            first = access.first_on_connection
            self.connections.append(-1 if first is None else first)
            self.took_s.append(float("nan") if access.took_s is None else access.took_s)

    def _client(self, name: bytes) -> int:
        short = self.privacy.client(name)
        if (known := self._client_ids.get(short)) is not None:
            return known
        if len(self._client_ids) < MOST_CLIENTS:
            self._client_ids[short] = len(self._client_ids)
            return len(self._client_ids) - 1
        return MOST_CLIENTS  # all further ones together: memory stays bounded

    def _id(self, method: bytes, target: bytes) -> int | None:
        """Give the number of what was asked for; None, and count it, where that can't be."""
        logged = method, self.privacy.asked(target)
        if logged in self._as_logged:
            found = self._as_logged[logged]
            if found is None:
                self.left_out[NO_PATH] += 1
            return found
        if len(self._as_logged) >= MOST_PATHS:
            self.left_out[TOO_MANY] += 1
            return None
        if len(logged[1]) > LONGEST_TARGET:
            self.left_out[NO_PATH] += 1
            return None
        try:
            asked = Asked(method.decode(), self.privacy.path(logged[1]))
        except (ValueError, Mistake):
            self._as_logged[logged] = None
            self.left_out[NO_PATH] += 1
            return None
        found = self._as_logged[logged] = self._asked.setdefault(asked, len(self._asked))
        return found

    def log(self, path: Path) -> Log:
        left_out = {why: number for why, number in self.left_out.items() if number}
        if not len(self):
            told = ", ".join(f"{number:,} {why}" for why, number in left_out.items())
            first = f" (line {self.bad[0].line} {self.bad[0].why})" if self.bad else ""
            raise Mistake(
                f"{path}: there is no request in it that can be used: {told or 'it is empty'}"
                f"{first}. Read are common and combined format, nginx's and Caddy's JSON, HAR"
            )
        times = np.frombuffer(self.times, dtype=np.float64)
        order = np.argsort(times, kind="stable")
        columns = (self.asked_ids, self.clients, self.sizes, self.statuses, self.connections)
        asked, clients, sizes, statuses, connections = (
            np.frombuffer(it, dtype=it.typecode)[order].astype(np.int64) for it in columns
        )
        return Log(
            path.name,
            list(self._asked),
            times[order],
            asked,
            clients,
            sizes,
            statuses,
            connections,
            np.frombuffer(self.took_s, dtype=np.float32)[order].astype(np.float64),
            self.lines,
            self.bad,
            left_out,
            dict(self.privacy.hidden),
        )
