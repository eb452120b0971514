"""The same question at several points."""

from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedArm, simulated_run
from webdyno.judge.sweep import judge_sweep
from webdyno.model.judgement import Verdict
from webdyno.model.point import Factor, PointPlan, SweepJudgement, cross
from webdyno.model.records import Record


def swept(rates: list[int]) -> SweepJudgement:
    """Apache at these rates against nginx at 40 000, one point each."""
    points = cross([Factor(key="load.connections", levels=[2**n for n in range(len(rates))])])
    records: list[Record] = []
    plans = []
    for point, rate in zip(points, rates, strict=True):
        arms = {"nginx": SimulatedArm(), "apache": SimulatedArm(rate_rps=rate)}
        run = simulated_run(arms, restart_sd=0.003, slot_sd=0.003, seed=point.number)
        records += [r.model_copy(update={"point": point.number}) for r in run.records]
        plans.append(PointPlan(point=point, experiment=run.head.experiment))
    return judge_sweep(run.head, plans, records)


def test_all_combinations_come_once_and_the_last_factor_changes_fastest() -> None:
    points = cross([Factor(key="a", levels=[1, 2]), Factor(key="b", levels=["x", "y", "z"])])
    assert [tuple(point.levels.values()) for point in points] == [
        (1, "x"), (1, "y"), (1, "z"), (2, "x"), (2, "y"), (2, "z"),
    ]  # fmt: skip
    assert points[4].number == 4
    assert points[4].label == "a = 2, b = y"


@given(st.lists(st.integers(1, 4), max_size=4))
def test_there_are_as_many_points_as_combinations(sizes: list[int]) -> None:
    factors = [Factor(key=f"f{i}", levels=list(range(size))) for i, size in enumerate(sizes)]
    points = cross(factors)
    expected = 1
    for size in sizes:
        expected *= size
    assert len({point.label for point in points}) == len(points) == expected


def test_each_point_is_judged_by_its_own_records() -> None:
    found = swept([20_000, 40_000, 80_000])
    verdicts = [at.judgement.verdict for at in found.points]
    assert verdicts == [Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.FASTER]
    assert all(at.judgement.blocks == 8 for at in found.points)
    assert "slower at 1 of 3 points (load.connections = 1)" in found.headline


def test_points_that_agree_are_said_shortly() -> None:
    assert swept([20_000, 25_000]).headline == "apache against nginx: slower at all 2 points"
