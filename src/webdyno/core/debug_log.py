"""What happens in a process of webdyno, line by line, in the file that `--debug` names.

A line has the time, the process, the module and what happened there. It is written at once, so that
the last one says where a process hangs, or where it was killed. Nothing of it is printed. Modules
write to loggers of the standard library below `webdyno`; this is where those lead.
"""

import errno
import logging
import os
import platform
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO

from webdyno.core.files import open_here, writing
from webdyno.core.hiding import HIDDEN
from webdyno.core.text import printable

DEBUG_FILE = "WEBDYNO_DEBUG"
"""The variable that names the file to the processes that this one starts."""
LINE = "%(asctime)s.%(msecs)03d %(process)d %(name)s: %(message)s"
SECOND = "%Y-%m-%d %H:%M:%S"
MAY_BE_SECRET = {"--bearer", "--data", "--env", "--header", "--user"}
"""Flags of whose values only the name is written that stands before `=` or `:`."""
_NAME = re.compile(r"[\w-]+[=:]")
_NAMED_SECRET = re.compile(
    r"([\w.-]{0,60}(?:authorization|cookie|passw|secret|token|api[-_]?key)[\w.-]{0,60}\"?\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|(?:bearer|basic)\s+\S+|\S+)",
    re.IGNORECASE,
)
_SENT = re.compile(r"(?:load\.headers|requests|login|values)\b[\w.*-]*=")
"""Keys of `--set` whose values are sent."""
_CURL = re.compile(r"\s*curl\s")
_ACCOUNT = re.compile(r"(?<=://)[^/@\s]+(?=@)")

logger = logging.getLogger(__name__)


class _Lines(logging.Formatter):
    """Hides secrets, and indents what follows the first line of a message."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record)).replace("\n", "\n    ")


class _DebugFile(logging.Handler):
    """Writes each line at once; a full disk neither ends what is measured nor prints anything."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.setFormatter(_Lines(LINE, SECOND))

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        with suppress(OSError):
            os.write(self._file.fileno(), line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


@contextmanager
def debug_log(words: Sequence[str], file: Path | None = None) -> Iterator[None]:
    """Add what happens inside to a file, also in processes that are started inside.

    `words` are those of this process's command line. Without a file it is that of the process which
    started this one, if that has any. Raise OperationError where it can't be written.
    """
    before = os.environ.get(DEBUG_FILE)
    if file is None and not before:
        yield
        return
    path = (file or Path(str(before))).absolute()
    with writing(path):
        opened = open_here(path, os.O_WRONLY | os.O_APPEND, mode=0o600)
        status = os.fstat(opened.fileno())
        if status.st_uid != os.geteuid():
            opened.close()
            raise OSError(errno.EPERM, "the file there belongs to somebody else")
        if status.st_mode & 0o077:
            opened.close()
            raise OSError(errno.EPERM, "others may have opened the file there; remove it")
    handler = _DebugFile(opened)
    package = logging.getLogger("webdyno")
    package.addHandler(handler)
    package.setLevel(logging.DEBUG)
    os.environ[DEBUG_FILE] = str(path)
    try:
        logger.debug(
            "webdyno %s, Python %s, Linux %s, user %d, in %s",
            *(version("webdyno"), platform.python_version(), platform.release(), os.geteuid()),
            Path.cwd(),
        )
        logger.debug("arguments: %s", words_without_secrets(words))
        yield
    except BaseException:
        logger.debug("ended by", exc_info=True)
        raise
    finally:
        package.removeHandler(handler)
        package.setLevel(logging.NOTSET)
        handler.close()
        if before is None:
            del os.environ[DEBUG_FILE]
        else:
            os.environ[DEBUG_FILE] = before


def words_without_secrets(words: Sequence[object]) -> str:
    """Return a command line without values that may be secrets, by what stands before them."""
    shown: list[str] = []
    for word in map(str, words):
        flag, equals, value = word.partition("=")
        if shown and shown[-1] in MAY_BE_SECRET:
            word = _name_alone(word)
        elif equals and flag in MAY_BE_SECRET:
            word = f"{flag}={_name_alone(value)}"
        elif sent := _SENT.match(word):
            word = f"{sent[0]}{HIDDEN}"
        elif _CURL.match(word):  # with cookies and passwords, as browsers copy it
            word = f"curl {HIDDEN}"
        shown.append(_NAMED_SECRET.sub(rf"\1{HIDDEN}", _ACCOUNT.sub(HIDDEN, word)))
    return shlex.join(shown)


def _name_alone(text: str) -> str:
    name = _NAME.match(text)
    return f"{name[0] if name else ''}{HIDDEN}"
