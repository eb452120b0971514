"""What lies in a league's folder: others may have copied it there."""

import json
import time
from contextlib import nullcontext
from dataclasses import replace
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


def sitting_of_a_second(folder: Path, asking: Asking) -> Sitting:
    ends = time.monotonic() + 1
    tasks, days = {TASK: STACKS}, timedelta(days=30)
    return Sitting(LeagueFolder(folder), asking, tasks, machine(), days, ends, lambda _: None)


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
    sitting = sitting_of_a_second(tmp_path, asking)
    with pytest.raises(UserError, match="too short"):  # for a run of its own
        sitting.measure_all()
    assert f"{path} is left unfinished: you didn't begin it" in said
    assert not (tmp_path / "proof").exists()


def test_a_run_takes_its_time_though_a_stack_has_left_the_catalog(tmp_path: Path) -> None:
    store(tmp_path, run_of(STACKS, rates=dict.fromkeys(STACKS, 9e3)))
    (run,) = LeagueFolder(tmp_path).runs()
    known = Catalogue.load()
    left = replace(known, stacks={name: known.stacks[name] for name in STACKS[1:]})
    caller = Caller(print, lambda _: nullcontext())  # type: ignore[arg-type, return-value]
    assert sitting_of_a_second(tmp_path, Asking(left, caller))._least_s(run) > 0
