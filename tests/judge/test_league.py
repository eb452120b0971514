"""Places, and who leaves the race."""

from math import sqrt

import numpy as np
import pytest

from builders import SimulatedArm, SimulatedRun, point_data, simulated_run
from judge.league_simulation import WORLDS, play
from webdyno.judge import decide, judge
from webdyno.judge.point_data import PointData
from webdyno.judge.questions.races import blocks_to_a_look, standings
from webdyno.model.judgement import League, Verdict
from webdyno.model.records import IncidentRecord, SlotRecord
from webdyno.model.run import RunHead

RATES = {"apache": 15_000.0, "caddy": 30_000.0, "lighttpd": 50_000.0, "nginx": 50_000.0}


def league_of(rates: dict[str, float], blocks: int = 12) -> SimulatedRun:
    run = simulated_run(
        {name: SimulatedArm(stack=name, rate_rps=rate) for name, rate in rates.items()},
        blocks=blocks,
    )
    experiment = run.head.experiment.model_copy(update={"race": "league"})
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), run.records)


def places_of(league: League | None) -> dict[str, tuple[int, int]]:
    assert league is not None
    return {it.arm: (it.best, it.worst) for it in league.places}


def test_places_are_ranges_where_arms_cannot_be_told_apart() -> None:
    run = league_of(RATES)
    found = judge(run.data)
    assert places_of(found.league) == {
        "nginx": (1, 2),
        "lighttpd": (1, 2),
        "caddy": (3, 3),
        "apache": (4, 4),
    }
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "share the first places of 4 by requests per second; then caddy (3), apache (4)" in (
        found.headline
    )


def test_the_first_is_what_the_others_are_compared_with() -> None:
    run = league_of(RATES | {"lighttpd": 70_000.0})
    found = judge(run.data)
    assert found.verdict is Verdict.FASTER
    assert places_of(found.league)["lighttpd"] == (1, 1)
    assert {it.b for it in found.comparisons} == {"lighttpd"}
    deciding = {it.a: it for it in found.comparisons if it.metric == "rate_rps"}
    assert list(deciding) == ["nginx", "caddy", "apache"]
    ratio = deciding["apache"].ratio
    assert ratio
    assert ratio.low < 15 / 70 < ratio.high
    assert all(it.verdict is Verdict.SLOWER for it in deciding.values())


def test_equal_first_ones_are_called_so() -> None:
    rates = {"apache": 15_000.0, "caddy": 50_000.0, "nginx": 50_000.0}
    run = simulated_run(
        {name: SimulatedArm(stack=name, rate_rps=rate) for name, rate in rates.items()},
        blocks=24,
        restart_sd=0.002,
        slot_sd=0.002,
    )
    experiment = run.head.experiment.model_copy(update={"race": "league"})
    found = judge(PointData.of(run.head.model_copy(update={"experiment": experiment}), run.records))
    assert found.verdict is Verdict.EQUIVALENT
    assert places_of(found.league)["apache"] == (3, 3)


def test_arms_whose_places_are_settled_leave_the_race_at_a_look() -> None:
    run = league_of(RATES)
    experiment = run.head.experiment
    look = blocks_to_a_look(experiment)
    assert 2.0 ** (1 - look) <= 0.05 / 2 / 6
    measured = run.data
    assert standings(measured.first(look - 1)).racing == list(RATES)
    assert standings(measured.first(look)).racing == ["lighttpd", "nginx"]


def test_a_league_ends_when_all_places_are_settled() -> None:
    run = league_of(RATES | {"lighttpd": 70_000.0})
    few = [it for it in run.records if it.block is None or it.block < 8]
    assert decide(point_data(few, run.head.experiment), 10.0) is None
    looked_at = [it for it in run.records if it.block is None or it.block < 9]
    stop = decide(point_data(looked_at, run.head.experiment), 10.0)
    assert stop
    assert stop.why == "every place is settled"


def test_a_league_ends_with_its_time() -> None:
    run = league_of(RATES)
    stop = decide(run.data, 1e6)
    assert stop
    assert stop.reason == "budget"


def test_an_arm_that_left_keeps_its_place_and_has_no_fault() -> None:
    run = league_of(RATES, blocks=16)
    look = blocks_to_a_look(run.head.experiment)
    records = [
        it
        for it in run.records
        if not (isinstance(it, SlotRecord) and it.arm == "apache" and it.block >= look)
    ]
    found = judge(PointData.of(run.head, records))
    assert places_of(found.league)["apache"] == (4, 4)
    assert not [it for it in found.warnings if it.severity == "invalid"]


def test_an_arm_whose_server_died_is_out_and_the_others_have_places() -> None:
    run = league_of(RATES)
    died = IncidentRecord(
        block=3, arm="nginx", happened_at=run.head.started_at, what="nginx died of signal 9"
    )
    records = [
        it
        for it in run.records
        if not (isinstance(it, SlotRecord) and it.arm == "nginx" and it.block >= 3)
    ]
    found = judge(PointData.of(run.head, [*records, died]))
    assert found.verdict is Verdict.FASTER
    assert set(places_of(found.league)) == {"lighttpd", "caddy", "apache"}
    assert found.league
    assert "signal 9" in found.league.out["nginx"]
    invalid = [it for it in found.comparisons if it.a == "nginx" and it.metric == "rate_rps"]
    assert [it.verdict for it in invalid] == [Verdict.INVALID]


def test_a_league_that_was_interrupted_at_once_has_no_order() -> None:
    run = league_of(RATES, blocks=1)
    found = judge(run.data)
    assert set(places_of(found.league).values()) == {(1, 4)}
    assert found.verdict is Verdict.INCONCLUSIVE
    nothing: RunHead = run.head
    assert judge(PointData.of(nothing, [])).verdict is Verdict.INVALID


@pytest.mark.parametrize("world", ["12 equal ones", "8, each 3% from the next"])
def test_leagues_of_a_known_order_are_seldom_wrong(world: str) -> None:
    leagues = 12
    rng = np.random.default_rng(7)
    wrong = sum(play(WORLDS[world], rng).is_wrong for _ in range(leagues))
    assert wrong / leagues <= 0.05 + 2 * sqrt(0.05 * 0.95 / leagues)


def test_arms_that_leave_make_room_for_those_that_are_close() -> None:
    logs = [*(0.3 * place for place in range(11)), 3.01]
    raced = play(logs, np.random.default_rng(3))
    assert raced.blocks > 60
    assert play(logs, np.random.default_rng(3), race=False).blocks == 30
