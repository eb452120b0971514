"""The same question at several points."""

import pytest

from builders import SimulatedVariant, simulated_run
from webdyno.comparison import judge_sweep
from webdyno.core.experiment import Level
from webdyno.core.judgement import Verdict
from webdyno.core.load import Load
from webdyno.core.records import Record
from webdyno.core.replay import Replay
from webdyno.core.request import WrittenRequest
from webdyno.core.sweep import SweepJudgement
from webdyno.evidence.point_data import RunData


def swept(rates: list[int]) -> SweepJudgement:
    """Apache at these rates against nginx at 40 000, one point each."""
    return judged({"load.connections": [2**number for number in range(len(rates))]}, rates)


def judged(
    factors: dict[str, list[Level]], rates: list[int], *, noise: float = 0.003
) -> SweepJudgement:
    """Judge points with Apache at these rates against nginx at 40 000, in the points' order."""
    records: list[Record] = []
    for number, rate in enumerate(rates):
        variants = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=rate)}
        run = simulated_run(variants, restart_sd=noise, slot_sd=0.003, seed=number)
        records += [record.model_copy(update={"point": number}) for record in run.records]
    there = run.head.experiment
    load = Load(replay=Replay([0.0, 1.0], [0, 0]).pack())
    changes = {"factors": factors, "load": load, "requests": [WrittenRequest(path="/hello.txt")]}
    varied = there.model_copy(update=changes)
    return judge_sweep(RunData(run.head.model_copy(update={"experiment": varied}), records))


def test_each_point_is_judged_by_its_own_records() -> None:
    found = swept([20_000, 40_000, 80_000])
    verdicts = [at.judgement.verdict for at in found.points]
    assert verdicts == [Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.FASTER]
    assert all(at.judgement.rounds == 8 for at in found.points)
    assert "slower at 1 of 3 points (connections = 1)" in found.headline


def test_points_that_agree_are_said_shortly() -> None:
    said = swept([20_000, 25_000]).headline
    assert said == "apache against nginx: slower at both points, 0.5032× to 0.6250×"


BOTH: list[Level] = ["poisson", "replay"]


def test_a_log_replayed_and_its_fitted_load_may_agree() -> None:
    found = judged({"load.arrivals": BOTH}, [20_000, 21_000])
    assert found.sentences == [
        "apache against nginx: slower at both points, 0.5032× to 0.5255×",
        "apache: the log replayed gives the verdict that the load made of it gives",
    ]


@pytest.mark.parametrize(
    ("rates", "verdicts"),
    [
        ([20_000, 80_000], "faster and slower"),
        ([80_000, 40_000], "equivalent and faster"),
    ],
)
def test_verdicts_that_differ_between_replay_and_fitted_load_are_reported(
    rates: list[int], verdicts: str
) -> None:
    assert judged({"load.arrivals": BOTH}, rates).sentences[1] == (
        "apache: the log replayed and the load made of it give different verdicts "
        f"({verdicts}); the replay has the log's bursts and order, and is the one to go by"
    )


def test_a_replay_without_an_answer_is_not_the_one_to_go_by() -> None:
    found = judged({"load.arrivals": ["replay", "constant"]}, [35_000, 160_000], noise=0.1)
    assert found.points[0].judgement.verdict is Verdict.INCONCLUSIVE
    assert "(inconclusive and faster); the replay has" in found.sentences[1]
    assert found.sentences[1].endswith("and no answer yet")


def test_a_replay_is_held_against_the_fitted_load_at_the_same_point() -> None:
    """The same verdicts come up with both, but at other numbers of connections."""
    factors: dict[str, list[Level]] = {"load.connections": [8, 64], "load.arrivals": BOTH}
    crossed = judged(factors, [20_000, 80_000, 80_000, 20_000])
    assert "different verdicts (faster and slower, slower and faster)" in crossed.sentences[1]
    assert "gives the verdict" in judged(factors, [20_000, 20_000, 80_000, 80_000]).sentences[1]


def test_arrivals_of_other_kinds_are_not_held_against_a_log() -> None:
    found = judged({"load.arrivals": ["poisson", "constant"]}, [20_000, 80_000])
    assert len(found.sentences) == 1
