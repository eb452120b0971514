"""An exception that nobody foresaw is reported in one sentence, and is no verdict."""

from collections.abc import Callable
from pathlib import Path

import pytest

from webdyno.core.errors import Exit, UserError
from webdyno.interfaces.cli import run_command_line


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[BaseException], int]:
    """Give what runs a command that raises something."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(error: BaseException) -> int:
        def fails(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr("webdyno.measure.folder.RunFolder.open", fails)
        return run_command_line(["report", "secret-argument"])

    return run


@pytest.mark.parametrize(
    "error", [ValueError("no\nsuch\x1b thing " + "x" * 999), RecursionError("deep"), MemoryError()]
)
def test_it_ends_with_3_and_names_a_file_with_the_traceback(
    failing: Callable[[BaseException], int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    assert failing(error) == Exit.FAILED
    reported = capsys.readouterr().err
    (kept,) = (tmp_path / "state/webdyno").iterdir()
    assert reported.count("\n") == 1
    assert len(reported) < 600
    assert "please report it" in reported
    assert str(kept) in reported
    assert "Traceback" not in reported
    trace = kept.read_text()
    assert "Traceback" in trace
    assert "in fails" in trace
    assert "secret-argument" not in trace
    assert kept.stat().st_mode & 0o777 == 0o600


def test_where_the_state_folder_can_not_be_written_it_is_elsewhere(
    failing: Callable[[BaseException], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "state").write_text("")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    assert failing(ValueError("x")) == Exit.FAILED
    (kept,) = (tmp_path / "tmp").iterdir()
    assert str(kept) in capsys.readouterr().err


def test_what_was_foreseen_ends_as_before(
    failing: Callable[[BaseException], int], tmp_path: Path
) -> None:
    assert failing(UserError("wrong")) == Exit.USER_ERROR
    with pytest.raises(SystemExit, match=str(int(Exit.INTERRUPTED))):  # the framework's end
        failing(KeyboardInterrupt())
    assert not (tmp_path / "state").exists()
