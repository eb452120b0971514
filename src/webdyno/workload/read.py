"""Reads logs, a line at a time: files, packed ones, standard input, HAR files."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from webdyno.model.format import number
from webdyno.model.mistake import Mistake
from webdyno.workload.formats import READ, Lines, Unreadable
from webdyno.workload.har import read_har
from webdyno.workload.log import Log, Wanted
from webdyno.workload.privacy import Privacy
from webdyno.workload.reading import Reading
from webdyno.workload.source import STDIN, TORN, opened
from webdyno.workload.unread import guess

LONGEST_LINE = 64 * 1024
MOST_REQUESTS = 10_000_000
MOST_USELESS_LINES, MOST_USELESS_BYTES = 1_000_000, 64 * 2**20
"""At the beginning of a log, without any request, until it is given up."""
LINES_BETWEEN = 2**16
"""From one word on how far it is to the next."""
_HAR = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Progress = Callable[[str, int, int], None]
"""Takes a file's name, the lines read of it, and the requests kept of all."""


def read_logs(
    paths: Sequence[Path], wanted: Wanted, privacy: Privacy, progress: Progress | None = None
) -> Log:
    """Read logs as one; raise Mistake where there is no request in them."""
    reading, told, hints = Reading(wanted, privacy), list[str](), list[str]()
    for path in paths:
        name = _name(path)
        one = _OneLog(name, reading, progress)
        try:
            with opened(path) as file:
                begins = file.peek(512)[:512].removeprefix(_BYTE_ORDER_MARK)
                if _HAR.match(begins):
                    accesses, of_it = read_har(file, name)
                    told += of_it
                    for access in accesses:
                        reading.take(access)
                else:
                    one.read(file)
        except TORN:
            told.append(f"{name} ends too early or is damaged; what was read before that is used")
        except OSError as error:
            raise Mistake(f"{name}: can't be read: {str(error.strerror).lower()}") from None
        hints += one.hints
    names = " ".join(map(_name, paths))
    if not len(reading):
        raise _nothing(names, reading, [*hints, *told])
    return reading.log(names if len(paths) == 1 else f"{len(paths)} logs", told)


def _name(path: Path) -> str:
    return "standard input" if path == STDIN else str(path)


class _OneLog:
    """Reads one log into columns that others may be in as well."""

    def __init__(self, name: str, reading: Reading, progress: Progress | None) -> None:
        self.name = name
        self.hints: list[str] = []
        self._reading = reading
        self._progress = progress
        self._lines = Lines()
        self._useless_bytes: int | None = 0
        """None from the first request on."""

    def read(self, file: BinaryIO) -> None:
        for at, line in enumerate(_lines(file, self.name), 1):
            self._take(at, line.removeprefix(_BYTE_ORDER_MARK) if at == 1 else line)
            self._reading.lines += 1
            self._check(at)

    def _take(self, at: int, line: bytes) -> None:
        if self._useless_bytes is not None:
            self._useless_bytes += len(line)
        if not line.strip():
            return
        try:
            if len(line) > LONGEST_LINE:
                raise Unreadable(f"is longer than {LONGEST_LINE // 1024} KiB")  # noqa: TRY301
            if access := self._lines.read(line):
                self._useless_bytes = None
                self._reading.take(access)
        except Unreadable as why:
            self._reading.note_bad(self.name, at, str(why))
            if not self.hints and (hint := guess(line[:LONGEST_LINE])):
                self.hints.append(hint)

    def _check(self, at: int) -> None:
        if self._useless_bytes is not None and (
            at >= MOST_USELESS_LINES or self._useless_bytes >= MOST_USELESS_BYTES
        ):
            raise Mistake(
                f"{self.name}: its first {number(at)} lines hold no request{_hint(self.hints)}"
            )
        if len(self._reading) >= MOST_REQUESTS:
            raise Mistake(
                f"{self.name}:{at}: {MOST_REQUESTS:,} requests are the most; choose some hours "
                "with --from and --to"
            )
        if self._progress and at % LINES_BETWEEN == 0:
            self._progress(self.name, at, len(self._reading))


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Give lines; of one that is too long the beginning, one byte longer than the longest."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        bytes_of_it = len(line)
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1)
            bytes_of_it += len(line)
            if bytes_of_it > MOST_USELESS_BYTES:
                raise Mistake(
                    f"{name}: a line is longer than {MOST_USELESS_BYTES // 2**20} MiB: is it a log?"
                )


def _hint(hints: Sequence[str]) -> str:
    return "; " + "; ".join(hints) if hints else f". Read are {READ}"


def _nothing(names: str, reading: Reading, hints: Sequence[str]) -> Mistake:
    left_out = ", ".join(f"{many:,} {why}" for why, many in reading.left_out.items())
    first = f" (line {reading.bad[0].line} {reading.bad[0].why})" if reading.bad else ""
    return Mistake(
        f"{names}: there is no request in it that can be used: {left_out or 'it is empty'}{first}"
        f"{_hint(hints)}"
    )
