"""A sitting of a league: what it measures, in which order, and for how long."""

import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders import SimulatedRun, machine
from league.leagues import FIRST, run_of, with_cold
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.records import StopRecord
from webdyno.launch.caller import Caller
from webdyno.launch.measure import MeasuredRun
from webdyno.league import measuring
from webdyno.league.measuring import Sitting
from webdyno.league.records import LeagueFolder
from webdyno.league.task import Asking, Task
from webdyno.measure.folder import RunFolder

SITTING_S = 7200.0
TASKS = (Task("json"), Task("fortunes"))
COLD = "express"


def test_those_that_had_not_warmed_up_come_last_and_share_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, list[str], float]] = []
    warmups_s: list[float | None] = []

    def measured(
        name: str, experiment: Experiment, _known: Catalogue, out: Path, _caller: Caller
    ) -> MeasuredRun:
        asked.append((name, list(experiment.variants), experiment.measure.budget_s))
        warmups_s.append(experiment.measure.warmup_s)
        run = with_cold(run_of(list(experiment.variants)), COLD, 0.1)
        now = datetime.now(UTC)
        head = run.head.replace(experiment=experiment, started_at=now, machine=machine())
        stop = StopRecord(round=1, stopped_at=now, reason="max-rounds", why="all are settled")
        path = SimulatedRun(head, [*run.records, stop]).stored(out.with_name(f"run-{len(asked)}"))
        return MeasuredRun(RunFolder.open(path), "finished")

    monkeypatch.setattr(measuring, "measure_again", measured)
    caller = Caller(lambda _: None, lambda _: nullcontext(), yes=True)  # type: ignore[arg-type, return-value]
    sitting = Sitting(
        LeagueFolder(tmp_path),
        Asking(Catalogue.load(), caller),
        {task: list(FIRST) for task in TASKS},
        machine(),
        timedelta(days=30),
        time.monotonic() + SITTING_S,
        lambda _: None,
    )
    assert sitting.measure_all()
    assert [name for name, _, _ in asked] == ["json-full", "fortunes-full"] * 2
    assert [COLD in stacks for _, stacks, _ in asked] == [True] * 4
    first, second, *then = (budget_s for *_, budget_s in asked)
    assert max(first, second) < SITTING_S / 4
    assert then == [pytest.approx(SITTING_S / 2, rel=0.01), pytest.approx(SITTING_S, rel=0.01)]
    assert warmups_s[:2] == [None, None]
    assert all(warmup_s and warmup_s > 5 for warmup_s in warmups_s[2:]), warmups_s
