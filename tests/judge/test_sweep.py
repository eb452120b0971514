"""The same question at several points."""

from builders import SimulatedArm, simulated_run
from webdyno.judge.sweep import judge_sweep
from webdyno.model.experiment import Level
from webdyno.model.judgement import Verdict
from webdyno.model.point import SweepJudgement
from webdyno.model.records import Record


def swept(rates: list[int]) -> SweepJudgement:
    """Apache at these rates against nginx at 40 000, one point each."""
    records: list[Record] = []
    for number, rate in enumerate(rates):
        arms = {"nginx": SimulatedArm(), "apache": SimulatedArm(rate_rps=rate)}
        run = simulated_run(arms, restart_sd=0.003, slot_sd=0.003, seed=number)
        records += [record.model_copy(update={"point": number}) for record in run.records]
    connections: list[Level] = [2**number for number in range(len(rates))]
    swept = run.head.experiment.model_copy(update={"factors": {"load.connections": connections}})
    return judge_sweep(run.head.model_copy(update={"experiment": swept}), records)


def test_each_point_is_judged_by_its_own_records() -> None:
    found = swept([20_000, 40_000, 80_000])
    verdicts = [at.judgement.verdict for at in found.points]
    assert verdicts == [Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.FASTER]
    assert all(at.judgement.blocks == 8 for at in found.points)
    assert "slower at 1 of 3 points (connections = 1)" in found.headline


def test_points_that_agree_are_said_shortly() -> None:
    assert swept([20_000, 25_000]).headline == "apache against nginx: slower at all 2 points"
