"""Opens a log: a file or standard input, packed or not."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from webdyno.model.mistake import Mistake

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
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "zstd -dc {0} | webdyno workload -"),
    b"PK\x03\x04": ("a ZIP archive", "unzip -p {0} | webdyno workload -"),
    b"LPKSHHRH": ("systemd's journal", "journalctl --file {0} -o cat | webdyno workload -"),
    b"PAR1": ("Parquet", "duckdb writes its rows as JSON: COPY … TO 'log.json'"),
}
"""What is read after another program has made lines of it."""


@contextmanager
def opened_log(path: Path) -> Iterator[Any]:
    """Open a log, unpacked; `-` is standard input. Raise Mistake for what is no file of lines."""
    with ExitStack() as stack:
        file: Any
        if path == STDIN:
            file = io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))
            stack.callback(file.detach)  # it stays open: it isn't ours
        else:
            check_is_file(path)
            file = stack.enter_context(path.open("rb"))
        yield stack.enter_context(_unpacked(file, path))


def check_is_file(path: Path) -> None:
    """Raise Mistake where a log is no regular file and not standard input either."""
    if path == STDIN or path.is_file():
        return
    if path.exists():
        raise Mistake(f"{path}: is no regular file; `webdyno workload -` reads standard input")
    raise Mistake(f"{path}: there is no such file")


def _unpacked(file: Any, path: Path) -> AbstractContextManager[Any]:  # noqa: ANN401
    begins = file.peek(_MAGIC_BYTES)[:_MAGIC_BYTES]
    for magic, (kind, command) in _ELSEWHERE.items():
        if begins.startswith(magic):
            raise Mistake(f"{path}: is {kind}; this makes it readable: {command.format(path)}")
    for magic, unpack in _PACKED.items():
        if begins.startswith(magic):
            return unpack(file)
    return nullcontext(file)
