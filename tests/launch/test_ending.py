"""Ctrl-C is never lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from webdyno.launch import ending


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handles signals as the command line does, until the test is over."""
    monkeypatch.setattr(ending, "_asked", [])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ending.end_by_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class AskedToEndWhenFreed:
    """What a finished process is to Python, with a Ctrl-C at the wrong moment."""

    def __del__(self) -> None:
        """Press Ctrl-C."""
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_both_signals_interrupt(number: int) -> None:
    ending.interrupt_again()  # nobody has asked yet
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


@pytest.mark.usefixtures("handled")
def test_one_that_python_dropped_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: dropped.append(args.exc_type))
    thing = AskedToEndWhenFreed()
    del thing
    assert dropped == [KeyboardInterrupt]
    with pytest.raises(KeyboardInterrupt):
        ending.interrupt_again()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_very_end_shows_no_traceback(number: int) -> None:
    program = (
        "import atexit, os\n"
        "from webdyno.launch.ending import end_by_signals, end_with\n"
        f"atexit.register(os.kill, os.getpid(), {int(number)})\n"
        "end_by_signals()\nend_with(0)\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-number, "")


@pytest.mark.usefixtures("handled")
def test_what_a_shell_has_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ending.end_by_signals()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
