"""How webdyno ends: a message for people instead of a traceback, and an exit code."""

import shlex
import sys
from enum import IntEnum

from webdyno.core.hiding import hidden


class _MessageError(Exception):
    """A message, without the secrets that a server or a program may have said."""

    def __str__(self) -> str:
        return hidden(super().__str__())


class UserError(_MessageError):
    """Something in the command, a file or a setting is wrong.

    The message names the file, line or flag, says what is wrong and what to do about it.
    """


class OperationError(_MessageError):
    """A server, tool or resource of this machine failed although the input was right.

    The message says what failed, with the end of its log where there is one, and what to do.
    """


def lacks_package(purpose: str, package: str) -> OperationError:
    """Return what to do where a package of an extra isn't there: `several hosts take`, `ray`.

    That installs the package itself: in a registry webdyno's own name may be anybody's.
    """
    where = shlex.quote(sys.prefix)
    return OperationError(
        f"{purpose} {package}: install it next to webdyno, with a checkout's .dyno/uv/bin/uv or "
        f"your own\n    uv pip install --directory=/ --python {where} {package}"
    )


class Exit(IntEnum):
    """An exit code; `MEANINGS` says for people what each of them means."""

    OK = 0
    INVALID = 1
    USER_ERROR = 2
    FAILED = 3
    WORSE = 4
    INCONCLUSIVE = 5
    INTERRUPTED = 130
    NOT_READ = 141
    """128 + SIGPIPE, as in `webdyno report RUN | head`."""


MEANINGS = {
    Exit.OK: "done; no limit is exceeded",
    Exit.INVALID: "invalid: what was measured can't be trusted",
    Exit.USER_ERROR: "error in the command, a file or a setting",
    Exit.FAILED: "a server, a tool or the disk failed on this machine",
    Exit.WORSE: "worse than the limit (95% confidence), or --fail-if holds",
    Exit.INCONCLUSIVE: "inconclusive: too little data to say whether a limit is exceeded",
    Exit.INTERRUPTED: "interrupted; what was measured is kept",
    Exit.NOT_READ: "output pipe closed",
}
