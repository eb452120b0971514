"""The sweep itself: what passes its limits, or ends as a defect, is a finding."""

import os
import signal
from pathlib import Path

import pytest

from fuzz.child import MOST_BYTES, alone, read, typed
from fuzz.driver import DEFECT, Said, check_end
from webdyno.core.errors import Exit

pytestmark = pytest.mark.long


def test_a_case_that_takes_too_much_memory_fails() -> None:
    def take() -> Said:
        return Said(Exit.OK, str(len(bytearray(b"x") * MOST_BYTES)), None)

    with pytest.raises(AssertionError, match="took"):
        alone(take)


def test_a_case_that_is_killed_fails() -> None:
    with pytest.raises(AssertionError, match="signal 9"):
        read(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_an_exception_that_nobody_foresaw_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("webdyno.measure.folder.RunFolder.open", broken)
    said = typed(["explain", "x"], tmp_path)
    assert DEFECT in said.printed
    with pytest.raises(AssertionError):
        check_end(said)
