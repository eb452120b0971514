"""Requests that write, where nothing puts back what they wrote."""

from pathlib import Path
from typing import Any

from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.arrangement import checked_with_own
from webdyno.launch.measure import state_that_stays

POST: list[dict[str, Any]] = [{"path": "/items", "method": "POST", "json": {"a": 1}}, {"path": "/"}]
STACK = "cmd:./server --port $PORT"


def reported(folder: Path, requests: list[dict[str, Any]], **more: object) -> str | None:
    (folder / "server").write_text("")
    keys = {key: more.pop(key) for key in ("prepare",) if key in more}
    variants = {"one": {"stack": STACK, **keys}, "two": {"stack": STACK, **keys}}
    data = {"title": "t", "question": "q?", "variants": variants, "requests": requests}
    draft = Draft.of(CommandLine({**data, **more}, {}), [])
    caller = at_terminal(RunFlags(yes=True))
    return state_that_stays(*checked_with_own(draft, Catalogue.load(), folder, caller))


def test_what_a_post_leaves_behind_is_reported(tmp_path: Path) -> None:
    said = reported(tmp_path, POST)
    assert said
    assert said.startswith("POST /items may write")
    assert "before_round" in said


def test_reading_or_putting_back_needs_no_word(tmp_path: Path) -> None:
    assert reported(tmp_path, POST[1:]) is None
    assert reported(tmp_path, POST, state={"before_round": ["git checkout db.json"]}) is None
    assert reported(tmp_path, POST, prepare="./reset") is None
