"""Runs that a page begins: one at a time, and what takes a yes on the terminal."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from typing import Self

import pytest
from starlette.testclient import TestClient

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.interfaces.ui.app import make_app
from webdyno.interfaces.ui.runs import Runs
from webdyno.interfaces.ui.starting import Starter

ORIGIN = "http://127.0.0.1:8080"
NOTHING = {"system": "no-such", "baseline": "no-such"}


def test_one_run_at_a_time(tmp_path: Path) -> None:
    starter = Starter(tmp_path / "new")
    begun = starter.begin("compare", NOTHING)
    if starter.is_busy:
        with pytest.raises(UserError, match="another run is in progress"):
            starter.begin("compare", NOTHING)
    begun.process.wait()
    assert not starter.is_busy
    assert begun.said
    starter.end()


def test_a_run_outlives_the_request_that_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.interfaces.ui.starting.words_of", lambda _: ["sleep", "60"])
    starter = Starter(tmp_path)

    def request() -> None:
        name = Path(f"/proc/{starter.begin('compare', NOTHING).process.pid}/comm")
        while name.read_text() != "sleep\n":
            time.sleep(0.01)

    thread = Thread(target=request)
    thread.start()
    thread.join()
    assert starter.last is not None
    with pytest.raises(TimeoutExpired):
        starter.last.process.wait(0.5)
    starter.end()
    assert not starter.is_busy


def test_nobody_else_reads_what_a_run_is_given(tmp_path: Path) -> None:
    """Everybody may read command lines."""
    settings = {"load.headers": {"Authorization": "Bearer t0ken"}}
    starter = Starter(tmp_path)  # with which its runs end
    begun = starter.begin("compare", {**NOTHING, "settings": settings})
    begun.process.wait()
    words = str(begun.process.args)
    assert "compare" in words
    assert "t0ken" not in words
    assert "no-such" in begun.said


@pytest.mark.parametrize("terminal", [None, lambda _: False])
def test_what_runs_code_takes_a_yes_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Callable[[str], bool] | None
) -> None:
    monkeypatch.chdir(tmp_path)
    starter = Starter(tmp_path, terminal)
    app = make_app(Runs(tmp_path), Catalogue.load(), starter, "right", 8080, str)
    with TestClient(app, base_url=f"{ORIGIN}/right") as client:
        for system in ("rev:main", "conf:nginx:new.conf"):
            for stack, baseline in ((system, "nginx"), ("nginx", system)):
                asked = {"stack": stack, "baseline": baseline}
                answer = client.post("/begin", headers={"origin": ORIGIN}, data=asked)
                assert answer.status_code == 400
                assert "on the terminal" in answer.text
    assert starter.last is None


def test_a_yes_on_the_terminal_begins_what_it_named(tmp_path: Path) -> None:
    questions: list[str] = []

    def agrees(question: str) -> bool:
        questions.append(question)
        return True

    starter = Starter(tmp_path, agrees)
    asked = {"system": "rev:main", "baseline": "nginx"}
    starter.begin("compare", asked, ["rev:main"]).process.wait()
    assert questions == ["a page asks to build and run rev:main; do that?"]
    assert starter.last is not None
    assert "rev:main" in starter.last.said  # which is no repository
    assert "allowed" not in starter.last.said


def test_a_page_that_was_not_agreed_to_can_run_no_commands(tmp_path: Path) -> None:
    """Even where the page itself lets them through."""
    starter = Starter(tmp_path)
    asked = {"system": "cmd:touch made", "baseline": "nginx"}
    starter.begin("compare", asked).process.wait()
    assert starter.last is not None
    assert "has not allowed" in starter.last.said
    assert not (tmp_path / "made").exists()


def test_a_log_is_never_written_into_what_lies_there(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("kept")

    class Always(datetime):
        @classmethod
        def now(cls, _: tzinfo | None = None) -> Self:
            return cls(2026, 1, 1, tzinfo=UTC)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webdyno.interfaces.ui.starting.datetime", Always)
        moment = f"{Always.now().astimezone():%Y-%m-%d-%H%M%S}"
        (tmp_path / f".{moment}-compare.log").symlink_to(theirs)
        with pytest.raises(OperationError, match="can't begin a run: File exists"):
            Starter(tmp_path).begin("compare", NOTHING)
    assert theirs.read_text() == "kept"
