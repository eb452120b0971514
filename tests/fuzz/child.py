"""Cases in a process of their own, whose memory is measured and whose end is sure."""

import os
import pickle
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir, suppress
from pathlib import Path

from fuzz.driver import BUSY_S, HANGS_AFTER_S, Said, says
from webdyno.core.errors import Exit, OperationError, UserError

MOST_BYTES = 500_000_000
"""Of memory, at most at once."""
ITSELF_BYTES = 100_000_000
"""What webdyno takes of that before it has read anything."""
STOPPED_AFTER_BYTES = 2 * MOST_BYTES
"""What a case may have as data, so that a finding is not the machine's end."""


def typed(words: Sequence[str], folder: Path) -> Said:
    """Give how webdyno ends in a folder, called in a process of its own."""

    def act() -> Said:
        with chdir(folder):
            return Said(*says(words)[:2], None)

    return alone(act)


def read(act: Callable[[], object]) -> Said:
    """Give how something ends that reads a file, as the command line would say it."""

    def notify() -> Said:
        try:
            return Said(Exit.OK, repr(act()), None)
        except UserError as user_error:
            return Said(Exit.USER_ERROR, f"webdyno: {user_error}", None)
        except OperationError as operation_error:
            return Said(Exit.FAILED, f"webdyno: {operation_error}", None)

    return alone(notify)


def alone(act: Callable[[], Said]) -> Said:
    """Run it in a process that has limits; fail where it passed them."""
    before = _resident_bytes()
    with tempfile.TemporaryFile() as result, tempfile.TemporaryFile() as printed:
        child = os.fork()
        if not child:
            _child(act, result.fileno(), printed.fileno())
        status, peak = _ended(child)
        result.seek(0)
        printed.seek(0)
        aside = printed.read().decode(errors="replace")[-3000:]
        assert os.WIFEXITED(status), f"ended by signal {os.WTERMSIG(status)}: {aside}"
        assert os.WEXITSTATUS(status) == 0, aside
        assert "Traceback" not in aside, aside
        taken = ITSELF_BYTES + max(peak - before, 0)
        assert taken < MOST_BYTES, f"took {taken / 1e6:.0f} MB"
        code, said, _ = pickle.load(result)  # noqa: S301 (what the child wrote)
        return Said(code, said, None)


def _child(act: Callable[[], Said], result: int, printed: int) -> None:
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (BUSY_S + 5, BUSY_S + 6))
        most = _data_bytes() + STOPPED_AFTER_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        os.write(result, pickle.dumps(act()))
        status = 0
    except BaseException:  # noqa: BLE001 (the process ends here, and says why)
        import traceback

        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        os._exit(status)


def _ended(child: int) -> tuple[int, int]:
    """Wait for a process, not for ever; give its status and the most memory that it had."""
    until = time.monotonic() + 1.5 * HANGS_AFTER_S
    while time.monotonic() < until:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return status, used.ru_maxrss * 1024
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return status, used.ru_maxrss * 1024


def _data_bytes() -> int:
    """Give what this process has as data already: what the test's own process had."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[5])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
