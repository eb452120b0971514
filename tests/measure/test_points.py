"""The points of an experiment: every combination of levels, each an experiment of its own."""

from collections.abc import Callable
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedRun, SimulatedVariant, run_head, simulated_run
from webdyno.core.experiment import Experiment, Level
from webdyno.core.load import Load
from webdyno.core.sweep import plan_points
from webdyno.launch.caller import LineProgress
from webdyno.measure import point as point_module
from webdyno.measure import session
from webdyno.measure.backend import PointTestbed
from webdyno.measure.folder import RunFolder
from webdyno.measure.local_backend import Agent
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint, Stopwatch

NOWHERE = PointTestbed(Agent([], {}), Agent([], {}))
BASE = Experiment.model_validate(
    {
        "title": "t",
        "question": "q",
        "site": "static",
        "measure": {"budget_s": 60, "seed": 1},
        "variants": {"a": {"stack": "nginx"}, "b": {"stack": "apache-event"}},
    }
)


def varied(factors: dict[str, list[Level]]) -> Experiment:
    return BASE.model_copy(update={"factors": factors})


def test_all_combinations_come_once_and_the_last_factor_changes_fastest() -> None:
    plans = plan_points(
        varied({"load.connections": [1, 2], "load.keepalive": ["always", "never", 10]})
    )
    assert [(p.experiment.load.connections, p.experiment.load.keepalive) for p in plans] == [
        (1, "always"), (1, "never"), (1, 10), (2, "always"), (2, "never"), (2, 10),
    ]  # fmt: skip
    assert plans[4].point.number == 4
    assert plans[4].point.label == "connections = 2, keepalive = never"


@given(st.lists(st.integers(1, 4), max_size=3))
def test_the_budget_is_shared_out_among_all_points(sizes: list[int]) -> None:
    keys = ["load.connections", "measure.slot_s", "load.timeout_s"]
    plans = plan_points(
        varied({key: list(range(1, size + 1)) for key, size in zip(keys, sizes, strict=False)})
    )
    assert len({plan.point.label for plan in plans}) == len(plans) == prod(sizes)
    assert sum(plan.experiment.measure.budget_s for plan in plans) <= 60.001
    assert {plan.experiment.measure.seed for plan in plans} == {1}


def test_only_a_single_point_is_given_more_time() -> None:
    experiment = run_head({"nginx": "nginx", "apache": "apache-event"}).experiment
    assert plan_points(experiment)[0].experiment.measure.patience > 1
    given = experiment.model_dump(exclude_unset=True)
    both = Experiment.model_validate(given | {"factors": {"load.connections": [1, 8]}})
    kept = Experiment.model_validate_json(both.model_dump_json())
    for it in (both, kept):
        assert [plan.experiment.measure.patience for plan in plan_points(it)] == [1, 1]


def test_a_factor_reaches_settings_that_no_variant_had_set_and_leaves_the_rest() -> None:
    (one, two) = plan_points(varied({"variants.a.settings.workers": [1, 2]}))
    assert one.experiment.variants["a"].settings == {"workers": 1}
    assert two.experiment.variants["a"].settings == {"workers": 2}
    assert two.experiment.variants["b"] == BASE.variants["b"]
    assert two.experiment.factors == {}


def test_an_experiment_without_factors_is_one_point() -> None:
    (plan,) = plan_points(BASE)
    assert plan.experiment == BASE
    assert plan.point.levels == {}


def point_of(
    run: SimulatedRun, folder: RunFolder, notify: Callable[[str], None] = print
) -> RunningPoint:
    """The only point of a run, where nothing is started."""
    progress = LineProgress(run.head, notify)
    return RunningPoint(run.data, [], NOWHERE, {}, folder, progress, commands_user=None)


@pytest.mark.parametrize(("rounds", "stops"), [(6, True), (8, True), (9, False), (0, True)])
def test_a_point_is_measured_until_it_has_the_rounds_asked_for_however_precise_it_is(
    tmp_path: Path, rounds: int, stops: bool
) -> None:
    variants = {
        "a": SimulatedVariant(throughput_rps=20_000),
        "b": SimulatedVariant(throughput_rps=40_000),
    }
    simulated = simulated_run(variants, rounds=8, restart_sd=0.001, slot_sd=0.001)
    with RunFolder.create(tmp_path / "run", simulated.head) as folder:
        point = point_of(simulated, folder)
        point.watch = Stopwatch(1e6)
        point.ask_for(rounds)
        assert point.stops() is stops


def test_logins_that_take_long_are_reported_once(tmp_path: Path) -> None:
    simulated = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()})
    reported: list[str] = []
    with RunFolder.create(tmp_path / "run", simulated.head) as folder:
        point = point_of(simulated, folder, reported.append)
        for users, took_s in ((64, 4.0), (8, 22.0), (64, 22.0), (64, 23.0)):
            variant = SimpleNamespace(name="a", load=Load(connections=users))
            point.report_logins(cast("PlannedVariant", variant), took_s)
    (said,) = (it for it in reported if "to log in" in it)
    assert said.startswith("64 users took 22 s to log in, and will at each start: ")


def test_the_time_of_pilots_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=0)
    now_s = [0.0]

    def run_pilots(_: RunningPoint) -> None:
        now_s[0] += 7

    def look_first(point: RunningPoint) -> None:
        """Nothing is started here."""

    def run_round(point: RunningPoint, number: int) -> None:
        now_s[0] += 3
        point.has_stopped = number == 1

    monkeypatch.setattr(point_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(session, "look_first", look_first)
    monkeypatch.setattr(session, "run_pilots", run_pilots)
    monkeypatch.setattr(session, "run_round", run_round)
    with RunFolder.create(tmp_path / "run", simulated.head) as folder:
        point = point_of(simulated, folder)
        session._take_turns([point], seed=1)
    assert point.used_s == 10
