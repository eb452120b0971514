"""Keeps secrets out of a run's folder, where servers repeat what they are sent."""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from webdyno.model.errors import OperationError
from webdyno.model.files import MIB, everything_below, replaced
from webdyno.model.records import Record
from webdyno.model.text import HIDDEN, hide

SAID_BY_OTHERS = frozenset(
    {"error", "headers", "body_start", "unlike", "failure_samples", "printed", "what", "log_tail"}
)
"""Keys of records under which stands what servers and load generators said."""

PART_BYTES = MIB


def line_of(record: Record, secrets: Collection[str]) -> bytes:
    """Give a record as a line of `slots.jsonl`, without secrets."""
    line = record.model_dump_json(by_alias=True)
    if secrets:
        line = json.dumps(_walked(json.loads(line), secrets), separators=(",", ":"))
    return line.encode() + b"\n"


def hide_in_files(folder: Path, secrets: Collection[str]) -> None:
    """Rewrite the files below a folder that show secrets, as a server's log may.

    Raise OperationError for a file that can't be rewritten.
    """
    if not secrets:
        return
    hiding = _Hiding(secrets)
    for path in everything_below(folder):
        with suppress(OSError):  # a link, a socket, or gone
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if stat.S_ISREG(os.fstat(descriptor).st_mode) and hiding.is_needed(file):
                    file.seek(0)
                    _rewrite(path, file, hiding)


def _rewrite(path: Path, file: BinaryIO, hiding: "_Hiding") -> None:
    before = os.fstat(file.fileno())
    try:
        with replaced(path) as unfinished, unfinished.open("xb") as written:
            os.fchown(written.fileno(), before.st_uid, before.st_gid)
            os.fchmod(written.fileno(), stat.S_IMODE(before.st_mode))
            written.writelines(hiding.hidden(file))
    except OSError as error:
        raise OperationError(
            f"{path}: shows a secret that can't be hidden: {error.strerror}; remove that file"
        ) from error


class _Hiding:
    """Hides secrets in files of any size, a part at a time."""

    def __init__(self, secrets: Collection[str]) -> None:
        words = sorted((secret.encode() for secret in secrets), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, words)))
        self._longest = len(words[0])

    def is_needed(self, file: BinaryIO) -> bool:
        """Whether a file shows a secret."""
        before = b""
        while part := file.read(PART_BYTES):
            if self._pattern.search(before + part):
                return True
            before = (before + part)[-self._longest :]
        return False

    def hidden(self, file: BinaryIO) -> Iterator[bytes]:
        """Give the content of a file without secrets."""
        left = b""
        while True:
            part = file.read(PART_BYTES)
            left += part
            # Where a secret may begin whose end was not read yet.
            sure = max(0, len(left) - self._longest + 1) if part else len(left)
            done = 0
            for secret in self._pattern.finditer(left):
                if secret.start() >= sure:
                    break
                yield left[done : secret.start()]
                yield HIDDEN.encode()
                done = secret.end()
            yield left[done : max(done, sure)]
            left = left[max(done, sure) :]
            if not part:
                return


def _walked(value: Any, secrets: Collection[str], *, said: bool = False) -> Any:  # noqa: ANN401
    """Hide secrets in what others said, in any nesting of lists and mappings."""
    if isinstance(value, str):
        return hide(value, secrets) if said else value
    if isinstance(value, list):
        return [_walked(inner, secrets, said=said) for inner in value]
    if isinstance(value, dict):
        return {
            key: _walked(inner, secrets, said=said or key in SAID_BY_OTHERS)
            for key, inner in value.items()
        }
    return value
