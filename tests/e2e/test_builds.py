"""A build that is ended in any way leaves nothing that runs, and the next one begins again."""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from e2e.commands import PATIENCE_S, environment, started_webdyno, webdyno
from waiting import wait_until
from webdyno.core.errors import Exit
from webdyno.host.users import server_user
from webdyno.servers.needs import SYSTEM_CACHE

SERVICE = """
title = "Slow to build"
protocol = "http"
start = ["true"]

[build]
commands = [["sh", "-c", 'test -e "$HOME/../../enough" || { echo $$ >pid; sleep 600; }']]
"""


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """A service of a name that no other has: what is built lies among what people have."""
    name = f"slow-{uuid4().hex[:8]}"
    for kind, text in (
        ("services", SERVICE),
        ("stacks", f'title = "t"\nserves = ["it"]\nfront = "it"\nservices.it.service = "{name}"\n'),
    ):
        (tmp_path / kind / name).mkdir(parents=True)
        (tmp_path / kind / name / f"{kind[:-1]}.toml").write_text(text)
    (tmp_path / "services" / name / "program").mkdir()
    (tmp_path / "services" / name / "program" / "main.txt").write_text(name)
    yield name
    for built in cache(tmp_path).glob(f"{name}-*"):
        shutil.rmtree(built)
    (cache(tmp_path) / "enough").unlink(missing_ok=True)


def cache(folder: Path) -> Path:
    own = Path(environment(folder)["XDG_CACHE_HOME"])
    return (own if server_user() is None else SYSTEM_CACHE) / "webdyno" / "programs"


def pid_of_build(folder: Path, name: str) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for file in cache(folder).glob(f"{name}-*/files/pid"):
            if said := file.read_text():
                return int(said)
        time.sleep(0.05)
    raise AssertionError("the build has not begun")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_what_ends_webdyno_ends_its_build(end: signal.Signals, tmp_path: Path, name: str) -> None:
    words = ("doctor", "--install", name, "--catalog", str(tmp_path), "--yes")
    with started_webdyno(*words, folder=tmp_path) as process:
        pid = pid_of_build(tmp_path, name)
        process.send_signal(end)
        process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not psutil.pid_exists(pid))
    if end == signal.SIGINT:
        assert process.returncode == Exit.INTERRUPTED
    (cache(tmp_path) / "enough").touch()
    done = webdyno(*words, folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    assert "built Slow to build" in done.stderr


def test_commands_of_strangers_are_shown_before_they_build(tmp_path: Path, name: str) -> None:
    done = webdyno("doctor", "--install", name, "--catalog", str(tmp_path), folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert "this isn't webdyno's own, and is code" in done.stderr
    assert "sleep 600" in done.stderr
    assert not [*cache(tmp_path).glob(f"{name}-*")]
