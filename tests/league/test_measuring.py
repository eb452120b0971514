"""A sitting of a league: what it measures, in which order, and for how long."""

import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders import SimulatedRun, machine
from league.leagues import FIRST, run_of, with_cold
from webdyno.config import Catalogue, read_overrides
from webdyno.core.errors import UserError
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
    warmups: list[tuple[float | None, float | None, str]] = []

    def measured(
        name: str, experiment: Experiment, _known: Catalogue, out: Path, _caller: Caller
    ) -> MeasuredRun:
        asked.append((name, list(experiment.variants), experiment.measure.budget_s))
        of_cold, of_other = map(experiment.warmup_s_of, (COLD, next(iter(experiment.variants))))
        warmups.append((of_cold, of_other, experiment.warmup_bursts_of(COLD)))
        run = with_cold(run_of(list(experiment.variants)), COLD, 0.1)
        now = datetime.now(UTC)
        head = run.head.replace(experiment=experiment, started_at=now, machine=machine())
        stop = StopRecord(round=1, stopped_at=now, reason="max-rounds", why="all are settled")
        path = SimulatedRun(head, [*run.records, stop]).stored(out.with_name(f"run-{len(asked)}"))
        return MeasuredRun(RunFolder.open(path), "finished")

    monkeypatch.setattr(measuring, "measure_again", measured)
    sitting = Sitting(
        LeagueFolder(tmp_path),
        asking_with(),
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
    assert warmups[:2] == [(None, None, "auto")] * 2
    assert all(of_cold and of_cold > 5 for of_cold, *_ in warmups[2:]), warmups
    assert [of_others for _, *of_others in warmups[2:]] == [[None, "on"]] * 2


def test_a_warm_up_that_the_user_sets_counts_for_what_was_cold_as_well() -> None:
    asking = asking_with("measure.warmup_s=3")
    experiment = asking.arrange(TASKS[0], FIRST, cold={COLD}, warmup_s=8).experiment
    assert (experiment.warmup_s_of(COLD), experiment.warmup_bursts_of(COLD)) == (3, "auto")


@pytest.mark.parametrize(
    ("more", "bursts"), [((), "on"), ((f"variants.{COLD}.warmup_bursts=off",), "off")]
)
@pytest.mark.parametrize("cold", [{COLD}, set[str]()])
def test_a_warm_up_of_its_own_comes_in_bursts(
    more: tuple[str, ...], bursts: str, cold: set[str]
) -> None:
    asking = asking_with(f"variants.{COLD}.warmup_s=20", *more)
    experiment = asking.arrange(TASKS[0], FIRST, cold=cold, warmup_s=8).experiment
    assert (experiment.warmup_s_of(COLD), experiment.warmup_bursts_of(COLD)) == (20, bursts)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("nginx.workers=2", "nginx is none of this league's stacks"),
        ("variants.expres.warmup_s=2", "expres is none of this league's stacks"),
        (f"{COLD}.thread=2", "thread"),
    ],
)
def test_what_no_run_can_have_is_refused_before_anything_is_measured(
    setting: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        asking_with(setting).check({TASKS[0]: FIRST})


def asking_with(*settings: str) -> Asking:
    caller = Caller(lambda _: None, lambda _: nullcontext(), yes=True)  # type: ignore[arg-type, return-value]
    return Asking(Catalogue.load(), caller, read_overrides(settings))


def test_what_is_set_of_a_stack_counts_in_the_runs_that_have_it() -> None:
    asking = asking_with(f"variants.{COLD}.warmup_s=20", "nginx.workers=2")
    others = [stack for stack in FIRST if stack != COLD]
    with_it, without = (asking.arrange(TASKS[0], each).experiment for each in (FIRST, others))
    assert [with_it.warmup_s_of(COLD), with_it.warmup_s_of(others[0])] == [20, None]
    assert {without.warmup_s_of(each) for each in others} == {None}
