"""What lies in a league's folder: others may have copied it there."""

import json
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from builders import machine
from league.leagues import FIRST, run_of, store
from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.launch.caller import Caller
from webdyno.league.measuring import Sitting
from webdyno.league.records import LeagueFolder
from webdyno.league.task import Asking, Task
from webdyno.measure.folder import HEAD_FILE

TASK, STACKS = Task("static"), ["nginx", "lighttpd", "apache-event"]


def change(run: Path, *without: str, **what: object) -> None:
    head = json.loads((run / HEAD_FILE).read_text())
    head["experiment"] |= what
    for key in without:
        del head["experiment"][key]
    (run / HEAD_FILE).write_text(json.dumps(head))


def test_what_is_damaged_or_no_ranking_is_passed_over(tmp_path: Path) -> None:
    right = store(tmp_path, run_of(FIRST))
    other = store(tmp_path, run_of(FIRST), days=1)
    change(other, "ranking")
    damaged = store(tmp_path, run_of(FIRST), days=2)
    (damaged / HEAD_FILE).write_text("{")
    swept = store(tmp_path, run_of(FIRST), days=3)
    change(swept, factors={"load.connections": [1, 2]})
    folder = LeagueFolder(tmp_path)
    assert [run.path for run in folder.runs()] == [right]
    assert set(folder.passed_over) == {other, damaged, swept}
    assert "no ranking" in folder.passed_over[other]


def test_an_unfinished_run_with_commands_of_others_is_left_alone(tmp_path: Path) -> None:
    said: list[str] = []
    caller = Caller(said.append, lambda _: nullcontext(), yes=True)  # type: ignore[arg-type, return-value]
    asking = Asking(Catalogue.load(), caller)
    experiment = asking.arrange(TASK, STACKS).experiment.model_dump(mode="json")
    path = store(
        tmp_path, run_of(STACKS, rates=dict.fromkeys(STACKS, 9e3), rounds=1), is_over=False
    )
    change(path, **experiment | {"state": {"before_round": [f"touch {tmp_path}/proof"]}})
    sitting = Sitting(
        LeagueFolder(tmp_path),
        asking,
        {TASK: STACKS},
        machine(),
        timedelta(days=30),
        time.monotonic() + 1,
        lambda _: None,
    )
    with pytest.raises(UserError, match="too short"):  # for a run of its own
        sitting.measure_all()
    assert f"{path} is left unfinished: you didn't begin it" in said
    assert not (tmp_path / "proof").exists()
