"""Machines as a sample: what their runs say together, and of one more."""

from math import exp, log

import numpy as np
import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from questions.ranking.test_decide import RATES, ranking_of
from validity.broken import load_with
from webdyno.comparison import judge
from webdyno.core.errors import UserError
from webdyno.core.judgement import Verdict
from webdyno.core.records import SlotRecord
from webdyno.fleet import FleetJudgement, judge_fleet, judge_machine, machines_differ
from webdyno.statistics.interval import intervals_of

FLEETS = 2_000
BETWEEN_SD, ROUND_SD, ROUNDS = 0.06, 0.04, 6


def measured(ratio: float, seed: int = 1, *, rounds: int = 8, **machine: object) -> SimulatedRun:
    """A run on a machine on which nginx is so many times as fast."""
    variants = {
        "apache": SimulatedVariant(throughput_rps=20_000),
        "nginx": SimulatedVariant(throughput_rps=20_000 * ratio),
    }
    run = simulated_run(variants, rounds=rounds, seed=seed, restart_sd=0.01, slot_sd=0.01)
    here = run.head.machine.model_copy(update=machine)
    return SimulatedRun(run.head.model_copy(update={"machine": here}), run.records)


def judged(*runs: SimulatedRun) -> FleetJudgement:
    return judge_fleet({f"m{n}": judge_machine(it.whole) for n, it in enumerate(runs, 1)})


@pytest.mark.parametrize("machines", [3, 8])
def test_both_intervals_hold_the_truth_as_often_as_they_say(machines: int) -> None:
    rng = np.random.default_rng(machines)
    truth, sd = log(4.0), np.hypot(BETWEEN_SD, ROUND_SD / ROUNDS**0.5)
    mean_held = another_held = 0
    for _ in range(FLEETS):
        shown = rng.normal(truth, sd, machines + 1)
        mean, another = intervals_of(shown[:-1], (0.0, 0.0), 0.95)
        mean_held += mean.low <= truth <= mean.high
        another_held += another.low <= shown[-1] <= another.high
    assert mean_held / FLEETS == pytest.approx(0.95, abs=0.015)
    assert another_held / FLEETS == pytest.approx(0.95, abs=0.015)


def test_equal_machines_are_seldom_reported_apart_and_unequal_ones_often() -> None:
    rng = np.random.default_rng(1)

    def reported(between_sd: float) -> float:
        fleets = (
            [rng.normal(rng.normal(0, between_sd), ROUND_SD, ROUNDS) for _ in range(5)]
            for _ in range(400)
        )
        return float(np.mean([machines_differ(it) for it in fleets]))

    assert reported(0.0) < 0.09
    assert reported(0.1) > 0.9


def test_machines_that_agree_say_so_together() -> None:
    found = judged(*(measured(ratio, seed) for seed, ratio in enumerate((3.9, 4.0, 4.1), 1)))
    assert found.verdict is Verdict.FASTER
    (at,) = found.points
    (pair,) = at.comparisons
    assert [it.verdict for it in pair.replicates] == [Verdict.FASTER] * 3
    assert pair.mean
    assert pair.another
    assert pair.mean.low < 4.0 < pair.mean.high
    assert pair.another.low < pair.mean.low < pair.mean.high < pair.another.high
    assert at.headline.startswith("nginx has 3.9")
    assert "faster; machine by machine faster on 3 of 3; expected on another such" in at.headline
    assert found.varieties == []


def test_machines_that_disagree_leave_it_open_and_what_differs_is_named() -> None:
    runs = [measured(3.0, 1), measured(0.5, 2, kernel="7.0"), measured(1.0, 3)]
    found = judged(*runs)
    assert found.verdict is Verdict.INCONCLUSIVE
    (pair,) = found.points[0].comparisons
    assert pair.machines_differ
    assert [(it.what, it.values["m2"]) for it in found.varieties] == [("machine.kernel", "7.0")]
    assert "inconclusive; machine by machine faster on 1, slower on 1, " in found.points[0].headline


def test_interference_with_the_machines_widens_both_intervals() -> None:
    shown = np.log([2.0, 2.1, 2.2])
    (mean, another), (wider, much_wider) = (
        intervals_of(shown, by, 0.95) for by in ((0.0, 0.0), (0.1, 0.2))
    )
    assert (mean.low - wider.low, wider.high - mean.high) == pytest.approx((0.1, 0.2))
    assert (another.low - much_wider.low) == pytest.approx(0.1)


def test_an_invalid_machine_is_named_and_excluded() -> None:
    bad = measured(4.0, 3)
    failed = load_with(failures={"reset": 500})
    records = [failed(it) if isinstance(it, SlotRecord) else it for it in bad.records]
    found = judged(measured(3.9, 1), measured(4.1, 2), SimulatedRun(bad.head, records))
    (pair,) = found.points[0].comparisons
    assert [it.machine for it in pair.valid] == ["m1", "m2"]
    assert pair.replicates[2].why
    assert pair.mean
    assert pair.mean.estimate == pytest.approx(exp((log(3.9) + log(4.1)) / 2), rel=0.02)
    alone = judged(measured(3.9, 1), SimulatedRun(bad.head, records))
    assert alone.verdict is Verdict.INCONCLUSIVE
    assert "needs two with a valid run; there is 1" in alone.points[0].headline


def test_other_experiments_are_no_fleet() -> None:
    other = measured(4.0, 2)
    load = other.head.experiment.load.model_copy(update={"connections": 7})
    experiment = other.head.experiment.model_copy(update={"load": load})
    head = other.head.model_copy(update={"experiment": experiment})
    found = judged(measured(4.0), SimulatedRun(head, other.records))
    assert found.verdict is Verdict.INVALID
    assert [it.what for it in found.mismatches["m2"]] == ["load.connections"]


def test_one_machine_is_none() -> None:
    with pytest.raises(UserError, match="two machines or more"):
        judged(measured(4.0))
    with pytest.raises(UserError, match="m1 and m2 were measured on the same machine"):
        judged(measured(4.0, identity="x"), measured(4.0, 2, identity="x"))


def test_points_that_a_machine_lacks_are_excluded() -> None:
    def swept(run: SimulatedRun, points: int) -> SimulatedRun:
        experiment = run.head.experiment.model_copy(
            update={"factors": {"load.connections": [1, 8]}}
        )
        records = [
            it.model_copy(update={"point": point}) for point in range(points) for it in run.records
        ]
        return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), records)

    found = judged(swept(measured(4.0, 1), 2), swept(measured(4.1, 2), 1))
    assert [it.levels for it in found.points] == [{"load.connections": 1}]
    assert found.excluded == [{"load.connections": 8}]


def test_a_machine_is_judged_as_its_own_report_has_it() -> None:
    run = measured(1.01, rounds=45)
    (at,) = judge_machine(run.whole).points
    whole = judge(run.data)
    decisive = [it for it in whole.comparisons if it.metric == "throughput_rps"]
    # What other metrics say next to it is for the report alone.
    assert at.compared == [it.model_copy(update={"clear": None}) for it in decisive]


def test_rankings_with_other_first_places_are_compared_with_the_same_variant() -> None:
    first, second = ranking_of(RATES), ranking_of(RATES | {"lighttpd": 20_000.0})
    (at,) = judged(first, second).points
    assert {it.b for it in at.comparisons} == {"apache"}
    assert [it.a for it in at.comparisons] == ["caddy", "lighttpd", "nginx"]
