"""How a process of webdyno begins and ends: signals, exit code, exceptions nobody foresaw."""

import ctypes
import os
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import NoReturn

from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.hiding import hidden
from webdyno.core.registry import as_called
from webdyno.core.text import printable

SHOWN_LETTERS = 200
THREADS = "OPENBLAS_NUM_THREADS"
KEYCTL = {"x86_64": 250, "aarch64": 219}
"""By machine: the number of the system call, which the C library has no function for."""
KEYCTL_JOIN_SESSION_KEYRING = 1

_asked: list[int] = []
"""The signals that asked us to end."""


def end_by_signals() -> None:
    """Raise KeyboardInterrupt at Ctrl-C and at SIGTERM, by which service managers end us."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # a shell's job in the background
            signal.signal(number, _interrupt)


def leave_matrices_one_thread() -> None:
    """Keep numpy's and scipy's OpenBLAS from a thread for each CPU, once they are imported.

    Ours are small: such threads mostly spin while they wait for each other. Only libraries get to
    know of it: variables in `os.environ` would be those of builds and of other commands of users.
    """
    if THREADS not in os.environ:
        os.putenv(THREADS, "1")


def leave_session_keyring() -> None:
    """As root, leave the session's keyring: programs of other users would possess its keys.

    Fork, execve and a change of user keep it (keyrings(7)). To be called before threads begin.
    """
    if os.geteuid() == 0 and (number := KEYCTL.get(os.uname().machine)):
        ctypes.CDLL(None).syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)


def end_with(code: int) -> NoReturn:
    """End the process with an exit code; both signals end it at once and without a word by now.

    Python would show the traceback of what interrupts its own end. What isn't removed yet, the
    warden and the next run remove.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)
    sys.exit(code)


def interrupt_again() -> None:
    """Raise the KeyboardInterrupt that got lost, if one did: Python drops what `__del__` raises."""
    if _asked:
        raise KeyboardInterrupt


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _asked.append(number)
    raise KeyboardInterrupt


def reported_end(error: BaseException, doing: str) -> Exit:
    """Report on standard error what ended a command, or a call; return the exit code that fits."""
    match error:
        case UserError():
            said, code = str(error), Exit.USER_ERROR
        case OperationError():
            said, code = str(error), Exit.FAILED
        case KeyboardInterrupt():
            said, code = "interrupted", Exit.INTERRUPTED
        case OSError():
            said, code = f"{error.filename or 'output'}: {error.strerror or error}", Exit.FAILED
        case Exception():
            said, code = keep_traceback(error, doing), Exit.FAILED
        case _:
            raise error
    with suppress(OSError):  # standard error can be closed or full as well
        print(f"webdyno: {printable(as_called(said))}", file=sys.stderr, flush=True)  # noqa: T201
    return code


def keep_traceback(error: Exception, command: str) -> str:
    """Write the traceback of a defect of webdyno's own; return what asks for a report."""
    said = hidden(" ".join(f"{type(error).__name__}: {error}".split()))
    if len(said) > SHOWN_LETTERS:
        said = f"{said[:SHOWN_LETTERS]}…"
    # Without the arguments, which may hold secrets.
    head = f"webdyno {version('webdyno')}, {command}\n\n"
    kept = _written(head + hidden("".join(traceback.format_exception(error))))
    what = f"{kept}, which holds the traceback" if kept else "what you typed"
    return f"this is a defect of webdyno ({said}); please report it, with {what}"


def _written(text: str) -> Path | None:
    from webdyno.core.files import state_folder
    from webdyno.host.users import make_closed

    prefix = f"error-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-"
    for folder in (state_folder, lambda: Path(tempfile.gettempdir())):
        with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
            there = folder()
            make_closed(there)
            with tempfile.NamedTemporaryFile(
                dir=there, prefix=prefix, suffix=".txt", delete=False
            ) as file:
                file.write(text.encode(errors="backslashreplace"))
            return Path(file.name)
    return None
