"""The file of `--debug`: what stands in a line, and what never does."""

import logging
import os
import resource
from pathlib import Path

import pytest

from webdyno.core.debug_log import DEBUG_FILE, debug_log, words_without_secrets
from webdyno.core.errors import OperationError
from webdyno.core.hiding import HIDDEN, SECRETS, keep_secret

LOGGER = logging.getLogger("webdyno.servers.service")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(DEBUG_FILE, raising=False)
    return tmp_path / "debug.log"


def test_lines_have_time_process_and_module_and_are_added(file: Path) -> None:
    for what in ("first", "second"):
        with debug_log(["list", what], file):
            LOGGER.debug("waits for %s", what)
    lines = file.read_text().splitlines()
    assert len(lines) == 6
    assert f" {os.getpid()} webdyno.servers.service: waits for first" in lines[2]
    assert lines[4].endswith("arguments: list second")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_others_may_have_open_is_none(file: Path) -> None:
    """To close it to them would not close what they have opened."""
    file.write_text("")
    file.chmod(0o644)
    with pytest.raises(OperationError, match="may have opened"), debug_log([], file):
        pass
    assert file.read_text() == ""


def test_it_is_that_of_processes_started_inside_and_of_nobody_later(file: Path) -> None:
    with debug_log([], file):
        assert os.environ[DEBUG_FILE] == str(file)
        with debug_log(["inside"]):
            pass
    assert "arguments: inside" in file.read_text()
    assert DEBUG_FILE not in os.environ
    before = file.read_text()
    with debug_log(["later"]):
        LOGGER.debug("nobody reads this")
    assert file.read_text() == before
    assert not LOGGER.isEnabledFor(logging.DEBUG)


def test_what_ends_it_is_there_with_where_it_came_from(file: Path) -> None:
    with pytest.raises(OperationError), debug_log([], file):
        raise OperationError("the servers died")
    said = file.read_text()
    assert "OperationError: the servers died" in said
    assert "test_debug_log.py" in said


def test_neither_secrets_nor_lines_of_others_come_into_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SECRETS, "known", set())
    keep_secret(["hunter2-hunter2"])
    with debug_log([], file):
        LOGGER.debug("said: %s", "hunter2-hunter2\n2026-01-01 00:00:00.000 1 webdyno: \x1b[2J")
    SECRETS.forget()
    said = file.read_text()
    assert "hunter2" not in said
    assert "\x1b" not in said
    assert "\n    2026-01-01" in said


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--bearer", "abcdef"], f"--bearer {HIDDEN}"),
        (["--bearer=abcdef"], f"--bearer={HIDDEN}"),
        (["--env", "PORT=80"], f"--env PORT={HIDDEN}"),
        (["--header", "Cookie: a=b"], f"--header Cookie:{HIDDEN}"),
        (["--set", 'load.headers.Authorization="Basic abc"'], HIDDEN),
        (["cmd:API_KEY=abcdef ./server --port $PORT"], f"API_KEY={HIDDEN} ./server --port"),
        (["url:http://me:abcdef@127.0.0.1/"], f"http://{HIDDEN}@127.0.0.1/"),
        (["url:http://127.0.0.1:80/?token=abcdef"], HIDDEN),
        (["--set", "load.headers.X-Shop=abc"], "load.headers.X-Shop="),
        (["--traffic", "curl http://127.0.0.1/ -b 'sessionid=abc' -u shop:abc"], "--traffic curl"),
    ],
)
def test_values_that_may_be_secrets_are_not_among_the_words(words: list[str], shown: str) -> None:
    said = words_without_secrets(words).replace("'", "")
    assert shown in said
    assert "abc" not in said
    assert "a=b" not in said
    assert "PORT=80" not in said


def test_links_and_what_is_no_file_are_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for wrong in ("link", "pipe", "missing/debug.log", ".", "/dev/full"):
        refused = pytest.raises(OperationError, match="can't be written")
        with refused, debug_log([], tmp_path / wrong):
            pass
    assert not file.exists()


def test_a_full_disk_ends_nothing_and_prints_nothing(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with debug_log([], file):
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, hard))
        try:
            LOGGER.debug("nothing of this can be written")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        LOGGER.debug("there is room again")
    assert "nothing of this" not in file.read_text()
    assert "there is room again" in file.read_text()
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give files away")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """He could read what is added, and chose who else may."""
    file = tmp_path / "debug.log"
    file.touch()
    os.chown(file, 12345, 12345)
    with pytest.raises(OperationError, match="belongs to somebody else"), debug_log([], file):
        pass
