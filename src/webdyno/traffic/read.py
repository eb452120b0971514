"""Reads logs, a line at a time: files, packed ones, standard input, HAR files."""

import bz2
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from webdyno.config.requests import text_of
from webdyno.core.errors import UserError
from webdyno.core.files import open_named, unreadable
from webdyno.core.format import number
from webdyno.formats.har import HarEntry, body_of, har_entries, no_har, own_requests, sent_bytes
from webdyno.traffic.access import Access, NoRequest, moment_of, took_of_number
from webdyno.traffic.lines import READ, Lines
from webdyno.traffic.log import Log, LogBuilder, LogSelection
from webdyno.traffic.privacy import Privacy

STDIN = Path("-")
TORN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""What unpacking raises where a file ends too early or is damaged."""
_MAGIC_BYTES = 8
_PACKED: dict[bytes, Callable[[Any], AbstractContextManager[Any]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_ELSEWHERE = {
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "zstd -dc {0} | webdyno traffic -"),
    b"PK\x03\x04": ("a ZIP archive", "unzip -p {0} | webdyno traffic -"),
    b"LPKSHHRH": ("systemd's journal", "journalctl --file {0} -o cat | webdyno traffic -"),
    b"PAR1": ("Parquet", "duckdb writes its rows as JSON: COPY … TO 'log.json'"),
}
"""What another program has to turn into lines first."""
LONGEST_LINE = 64 * 1024
MOST_REQUESTS = 10_000_000
MOST_USELESS_LINES, MOST_USELESS_BYTES = 1_000_000, 64 * 2**20
"""How far a log is read without finding any request."""
LINES_BETWEEN = 2**16
"""Lines from one progress report to the next."""
_HAR = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Progress = Callable[[str, int, int], None]
"""Takes a file's name, the lines read of it, and the requests kept of all."""
_NOT_READ = (
    (
        rb"^(?:.{0,200} )?\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+:",
        (
            "it looks like nginx's error log; the requests are in access_log, most often "
            "/var/log/nginx/access.log"
        ),
    ),
    (
        rb"^\[\w{3} \w{3} \d\d [\d:.]+ \d{4}\] \[",
        (
            "it looks like Apache's error log; the requests are in CustomLog, most often "
            "/var/log/apache2/access.log"
        ),
    ),
    (
        rb' - "[A-Z]+ \S+ HTTP/[\d.]+" \d{3}',
        (
            "it looks like uvicorn's log without times; `docker logs --timestamps` or %(asctime)s "
            "in its formatter adds them"
        ),
    ),
    (
        rb"^\d{4}-\d\d-\d\d[ \t]\d\d:\d\d:\d\d[ \t]\S+[ \t]",
        (
            "it looks like IIS, CloudFront or another W3C log without its line #Fields:; put that "
            "line first"
        ),
    ),
    (
        rb"Connect from \S+ to \S+|\] \S+ \S+ -?\d+/-?\d+/\+?-?\d+ \d+ \S\S ",
        "it looks like HAProxy's TCP log; `option httplog` makes it name requests",
    ),
    (
        rb"^[0-9a-f]{64} \S+ \[",
        "it looks like Amazon S3's access log, which isn't read; CloudFront's is",
    ),
    (
        rb"^(?:\x1b\[\d+m)*(?:GET|POST|HEAD|PUT|DELETE|PATCH) \S+ (?:\x1b\[\d+m)*(?:\d{3}|-)",
        "it looks like morgan's short format, which has no times; morgan('combined') has",
    ),
    (
        rb'Started (?:GET|POST|HEAD|PUT|DELETE|PATCH) "',
        "it looks like the log of Rails; the log of the server before it can be read",
    ),
)
"""What a line of a log looks like that can't be read, and what makes the log readable."""
_NOT_READ_COMPILED = [(re.compile(pattern), guess) for pattern, guess in _NOT_READ]


@contextmanager
def opened_log(path: Path) -> Iterator[Any]:
    """Open a log, unpacked; `-` is standard input. Raise UserError for what is no file of lines."""
    with ExitStack() as stack:
        file: Any
        if path == STDIN:
            file = io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))
            stack.callback(file.detach)  # it stays open: it isn't ours
        else:
            check_is_file(path)
            file = stack.enter_context(io.BufferedReader(open_named(path, str(path))))
        yield stack.enter_context(_unpack(file, path))


def check_is_file(path: Path) -> None:
    """Raise UserError where a log is no regular file and not standard input either."""
    if path == STDIN or path.is_file():
        return
    if path.exists():
        raise UserError(f"{path}: is no regular file; `webdyno traffic -` reads standard input")
    raise UserError(f"{path}: there is no such file")


def _unpack(file: Any, path: Path) -> AbstractContextManager[Any]:  # noqa: ANN401
    begins = file.peek(_MAGIC_BYTES)[:_MAGIC_BYTES]
    for magic, (kind, command) in _ELSEWHERE.items():
        if begins.startswith(magic):
            raise UserError(f"{path}: is {kind}; this makes it readable: {command.format(path)}")
    for magic, unpack in _PACKED.items():
        if begins.startswith(magic):
            return unpack(file)
    return nullcontext(file)


def read_logs(
    paths: Sequence[Path], wanted: LogSelection, privacy: Privacy, progress: Progress | None = None
) -> Log:
    """Read logs as one; raise UserError where there is no request in them."""
    builder, notes, hints = LogBuilder(wanted, privacy), list[str](), list[str]()
    for path in paths:
        name = _name(path)
        one = _OneLog(name, builder, progress)
        try:
            with opened_log(path) as file:
                begins = file.peek(512)[:512].removeprefix(_BYTE_ORDER_MARK)
                if _HAR.match(begins):
                    own = own_requests(har_entries(text_of(file, name), name), name)
                    notes += [own.excluded] if own.excluded else []
                    for access in _har_requests(own.entries, name):
                        builder.take(access)
                else:
                    one.read(file)
        except TORN:
            notes.append(f"{name} ends too early or is damaged; what was read before that is used")
        except OSError as error:
            raise unreadable(name, error) from None
        hints += one.hints
    names = " ".join(map(_name, paths))
    if not len(builder):
        raise _nothing(names, builder, [*hints, *notes])
    return builder.log(names if len(paths) == 1 else f"{len(paths)} logs", notes)


def _name(path: Path) -> str:
    return "standard input" if path == STDIN else str(path)


class _OneLog:
    """Reads one log into columns that others may be in as well."""

    def __init__(self, name: str, builder: LogBuilder, progress: Progress | None) -> None:
        self.name = name
        self.hints: list[str] = []
        self._builder = builder
        self._progress = progress
        self._lines = Lines()
        self._useless_bytes: int | None = 0
        """None from the first request on."""

    def read(self, file: BinaryIO) -> None:
        for index, line in enumerate(_lines(file, self.name), 1):
            self._take(index, line.removeprefix(_BYTE_ORDER_MARK) if index == 1 else line)
            self._builder.lines += 1
            self._check(index)

    def _take(self, line_number: int, line: bytes) -> None:
        if self._useless_bytes is not None:
            self._useless_bytes += len(line)
        if not line.strip():
            return
        try:
            if len(line) > LONGEST_LINE:
                raise NoRequest(f"is longer than {LONGEST_LINE // 1024} KiB")  # noqa: TRY301
            if access := self._lines.read(line):
                self._useless_bytes = None
                self._builder.take(access)
        except NoRequest as why:
            self._builder.note_bad(self.name, line_number, str(why))
            if not self.hints:
                begins = line[:LONGEST_LINE]
                guesses = [guess for pattern, guess in _NOT_READ_COMPILED if pattern.search(begins)]
                self.hints += guesses[:1]

    def _check(self, lines: int) -> None:
        if self._useless_bytes is not None and (
            lines >= MOST_USELESS_LINES or self._useless_bytes >= MOST_USELESS_BYTES
        ):
            raise UserError(
                f"{self.name}: its first {number(lines)} lines hold no request{_hint(self.hints)}"
            )
        if len(self._builder) >= MOST_REQUESTS:
            raise UserError(
                f"{self.name}:{lines}: {MOST_REQUESTS:,} requests are the most; choose some hours "
                "with --from and --to"
            )
        if self._progress and lines % LINES_BETWEEN == 0:
            self._progress(self.name, lines, len(self._builder))


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Return lines; of one that is too long the beginning, one byte longer than the longest."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        bytes_of_it = len(line)
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1)
            bytes_of_it += len(line)
            if bytes_of_it > MOST_USELESS_BYTES:
                raise UserError(
                    f"{name}: a line is longer than {MOST_USELESS_BYTES // 2**20} MiB: is it a log?"
                )


def _hint(hints: Sequence[str]) -> str:
    return "; " + "; ".join(hints) if hints else f". Read are {READ}"


def _nothing(names: str, builder: LogBuilder, hints: Sequence[str]) -> UserError:
    excluded = ", ".join(f"{many:,} {why}" for why, many in builder.excluded.items())
    first = f" (line {builder.bad[0].line} {builder.bad[0].why})" if builder.bad else ""
    return UserError(
        f"{names}: there is no request in it that can be used: {excluded or 'it is empty'}{first}"
        f"{_hint(hints)}"
    )


def _har_requests(entries: list[tuple[int, HarEntry]], place: str) -> Iterator[Access]:
    """Yield requests, all of one client."""
    seen: set[str] = set()
    waits_s = [_waited_s(entry) for _, entry in entries]
    # The shortest has little but the way there and back, which all have.
    way_s = min((wait_s for wait_s in waits_s if wait_s is not None), default=0.0)
    for (index, entry), wait_s in zip(entries, waits_s, strict=True):
        first = entry.connection not in seen if entry.connection else None
        seen.add(entry.connection or "")
        body = body_of(entry, place)
        yield Access(
            _started_s(entry, f"log.entries.{index}.startedDateTime", place),
            b"",
            b"",
            entry.request.method.upper().encode(errors="replace"),
            entry.request.url.encode(errors="replace"),
            entry.response.status,
            sent_bytes(entry.response),
            first,
            None if wait_s is None else wait_s - way_s,
            body=body,
            content_type=_content_type(entry) if body else "",
        )


def _started_s(entry: HarEntry, where: str, place: str) -> float:
    if entry.started is None:
        raise no_har(place, f"{where} field required")
    try:
        return moment_of(entry.started)
    except (ValueError, OverflowError):
        raise UserError(
            f"{place}: {where} {entry.started!r:.60} is no time such as 2026-11-22T13:55:36.123Z"
        ) from None


def _content_type(entry: HarEntry) -> str:
    request = entry.request
    headers = (each.value for each in request.headers if each.name.lower() == "content-type")
    return next(headers, request.post_data.mime_type if request.post_data else "")


def _waited_s(entry: HarEntry) -> float | None:
    """Return how long a server took; None where the browser doesn't know, or has a cache."""
    wait_ms = entry.timings.wait if entry.timings else None
    if wait_ms is None or entry.response.body_bytes == 0:
        return None
    return took_of_number(wait_ms, 1e-3)
