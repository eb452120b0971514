"""What variants cost at a given arrival rate, and while nobody asks them anything."""

import re

import pytest

from builders import SimulatedRun, SimulatedVariant
from evidence.rates import MIB, at_rate, instructions, rest
from webdyno.comparison import judge, judge_sweep
from webdyno.comparison.judgement import decisive
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict
from webdyno.core.metrics import CPU_TIME, THROUGHPUT
from webdyno.core.records import Record, RestRecord, RoundRecord
from webdyno.questions.ranking.settings import RankingSettings

UVICORN, GRANIAN = SimulatedVariant(server_cpu_us=340.0), SimulatedVariant(server_cpu_us=210.0)
PAIR = {"uvicorn": UVICORN, "granian": GRANIAN}


def holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def test_each_variant_has_its_cores_and_what_one_of_these_can_do() -> None:
    judged = judge(at_rate(2_000, PAIR).data)
    uvicorn, granian = judged.costs
    assert (uvicorn.variant, granian.variant) == ("uvicorn", "granian")
    assert {uvicorn.rate_rps, granian.rate_rps} == {2_000}
    assert uvicorn.cores_per_1000_rps.estimate == pytest.approx(0.340, rel=0.02)
    assert granian.cores_per_1000_rps.estimate == pytest.approx(0.210, rel=0.02)
    cores, each = granian.cores_per_1000_rps, granian.requests_per_core_s
    assert (each.low, each.high) == pytest.approx((1_000 / cores.high, 1_000 / cores.low))


def test_the_answer_says_ratio_rate_and_cores() -> None:
    judged = judge(at_rate(2_000, PAIR).data)
    assert judged.verdict is Verdict.FASTER
    assert re.fullmatch(
        r"granian costs less: 0\.6\d+× the CPU of uvicorn at 2,000 requests/s "
        r"\(95% CI 0\.6\d+–0\.6\d+×\), "
        r"0\.2[01]\d* against 0\.3[34]\d* cores per 1,000 requests/s",
        judged.headline,
    )


@pytest.mark.parametrize(
    ("other", "begins"),
    [
        (SimulatedVariant(server_cpu_us=680.0), r"other costs more: (1\.9|2\.0)"),
        (SimulatedVariant(server_cpu_us=340.5), r"equivalent: other takes (0\.99|1\.0)"),
    ],
    ids=["dearer", "equal"],
)
def test_each_verdict_has_its_words(other: SimulatedVariant, begins: str) -> None:
    judged = judge(at_rate(500, {"uvicorn": UVICORN, "other": other}, noise=0.003, rounds=12).data)
    assert re.match(begins, judged.headline)
    assert "the CPU of uvicorn at 500 requests/s" in judged.headline


def test_variants_at_rates_of_their_own_are_reported_so() -> None:
    run = at_rate(2_000, PAIR)
    known = run.head.experiment.variants
    slower = {**known, "granian": known["granian"].replace(load={"rate_per_s": 500.0})}
    experiment = run.head.experiment.replace(variants=slower)
    judged = judge(SimulatedRun(run.head.replace(experiment=experiment), run.records).data)
    assert "at 500 and 2,000 requests/s" in judged.headline


def test_another_question_has_no_costs() -> None:
    by_throughput = at_rate(2_000, PAIR, decide_on=THROUGHPUT)
    assert not judge(by_throughput.data).costs
    run = at_rate(2_000, PAIR)
    closed = run.head.experiment.load.replace(loop="closed", rate_per_s=None)
    experiment = run.head.experiment.replace(load=closed)
    judged = judge(SimulatedRun(run.head.replace(experiment=experiment), run.records).data)
    assert not judged.costs
    assert "is better" in judged.headline


def test_what_is_overloaded_has_no_cost() -> None:
    slow = SimulatedVariant(throughput_rps=1_200, server_cpu_us=800.0)
    judged = judge(at_rate(2_000, {"nginx": GRANIAN, "slow": slow}).data)
    assert judged.verdict is Verdict.INVALID
    assert [cost.variant for cost in judged.costs] == ["nginx"]
    assert "2,000 req/s were offered, but 1,1" in judged.headline
    (compared,) = decisive(judged.comparisons, CPU_TIME)
    assert not compared.costs


def test_ranks_are_reported_with_their_rate() -> None:
    bun = SimulatedVariant(server_cpu_us=110.0)
    run = at_rate(500, {**PAIR, "bun": bun}, rounds=10)
    experiment = run.head.experiment.replace(asks=RankingSettings())
    judged = judge(SimulatedRun(run.head.replace(experiment=experiment), run.records).data)
    assert judged.headline == (
        "1. bun · 2. granian · 3. uvicorn, by CPU per request at 500 requests/s"
    )
    assert {cost.variant for cost in judged.costs} == {"uvicorn", "granian", "bun"}


def test_of_several_rates_each_answer_is_reported() -> None:
    records: list[Record] = []
    for number, rate in enumerate((500, 2_000)):
        run = at_rate(rate, PAIR)
        records += [record.replace(point=number) for record in run.records]
    experiment = run.head.experiment.replace(factors={"load.rate_per_s": [500, 2_000]})
    sweep = SimulatedRun(run.head.replace(experiment=experiment), records)
    first, second = judge_sweep(sweep.whole).sentences
    assert first.startswith("granian costs less: 0.6")
    assert "at 500 requests/s" in first
    assert "at 2,000 requests/s" in second


def rested(*looks: Record) -> SimulatedRun:
    """A run with what was seen at rest, or counted, before the end of its rounds."""
    run = at_rate(2_000, PAIR)
    first_end = next(at for at, it in enumerate(run.records) if isinstance(it, RoundRecord))
    return SimulatedRun(run.head, [*run.records[:first_end], *looks, *run.records[first_end:]])


def test_what_is_used_at_rest_is_reported_of_finished_rounds() -> None:
    looks = [rest("uvicorn", n, cpu_s=0.001 * n, wake_ups=10 * n) for n in (1, 2, 3, 99)]
    (found,) = judge(rested(*looks).data).at_rest
    assert (found.variant, found.rounds) == ("uvicorn", 3)
    assert found.cpu_share.median == pytest.approx(0.002)
    assert found.wake_ups_per_s.most == 30
    assert found.memory_mib
    assert found.memory_mib.median == 20
    assert found.connection_kib
    assert found.connection_kib.median == 2


def test_a_round_that_was_measured_again_counts_once() -> None:
    (found,) = judge(rested(rest("uvicorn", wake_ups=7), rest("uvicorn", wake_ups=9)).data).at_rest
    assert (found.rounds, found.wake_ups_per_s.median) == (1, 9)


@pytest.mark.parametrize(
    ("look", "kib"),
    [
        (rest("uvicorn", held=199), None),
        (rest("uvicorn", memory_with_held_bytes=None), None),
        (rest("uvicorn", memory_with_held_bytes=19 * MIB), 0),
    ],
    ids=["too few", "unknown", "less memory than before"],
)
def test_connections_are_reported_where_they_can_be(look: RestRecord, kib: float | None) -> None:
    (found,) = judge(rested(look).data).at_rest
    assert (found.connection_kib and found.connection_kib.median) == kib


def test_instructions_are_those_of_finished_rounds_for_each_response() -> None:
    counted = [
        instructions("uvicorn", number, each=each)
        for number, each in enumerate((900_000, 1_000_000, 1_200_000))
    ]
    unfinished = instructions("uvicorn", 99, each=1)
    uvicorn, granian = judge(rested(*counted, unfinished).data).costs
    assert uvicorn.instructions
    assert (uvicorn.instructions.least, uvicorn.instructions.median) == (900_000, 1_000_000)
    assert granian.instructions is None
    assert uvicorn.uncounted == granian.uncounted == ""


def test_why_instructions_are_not_known_is_reported() -> None:
    costs = judge(rested(instructions("uvicorn", fault="this machine has no counters")).data).costs
    assert {cost.uncounted for cost in costs} == {"this machine has no counters"}
    assert {cost.instructions for cost in costs} == {None}


def test_without_looks_nothing_is_reported_of_rest() -> None:
    assert judge(at_rate(2_000, PAIR).data).at_rest == []


@pytest.mark.long
def test_intervals_of_costs_hold_the_truth_as_often_as_they_say() -> None:
    """95%: of 40 chance lets 32 hold at least in all but one of a thousand."""
    held = 0
    for seed in range(40):
        run = at_rate(500, PAIR, rounds=6, noise=0.03, seed=seed)
        held += holds(judge(run.data).costs[0].cores_per_1000_rps, 0.340)
    assert held >= 32
