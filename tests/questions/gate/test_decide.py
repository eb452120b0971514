"""The gate's judge: claims made of records, what it answers, when it stops."""

import re

import pytest

from builders import SimulatedRun, SimulatedVariant, point_data, simulated_run
from validity.broken import load_with
from webdyno.comparison import decide, question_of
from webdyno.core.base import Interval
from webdyno.core.experiment import Experiment
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD, GateAnswer, GateJudgement
from webdyno.core.load_result import Window
from webdyno.core.measure import Measure
from webdyno.core.records import SlotRecord
from webdyno.core.sweep import plan_points
from webdyno.evidence.point_data import PointData, RunData
from webdyno.questions.compare.settings import CompareSettings
from webdyno.questions.gate.claims import claims_of
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.gate.words import change_range, limit_words
from webdyno.statistics.verdict import RISK

ROUNDS = 10
NEARLY_WORSE_US = 21.15
"""CPU time of which it is all but sure that it is 5% more than 20 µs."""


def gate_run(
    head: SimulatedVariant,
    *,
    baseline: SimulatedVariant | None = None,
    again: SimulatedVariant | None = None,
    restart_sd: float = 0.008,
    budget_s: float = 3600.0,
) -> SimulatedRun:
    variants = {
        BASELINE: baseline or SimulatedVariant(),
        BASELINE_AGAIN: again or SimulatedVariant(),
        HEAD: head,
    }
    measure = Measure(seed=1, decide_on="server_cpu_us", budget_s=budget_s)
    run = simulated_run(
        variants, rounds=ROUNDS, measure=measure, restart_sd=restart_sd, slot_sd=0.008
    )
    return run.asking(GateSettings())


def judged_whole(run: RunData) -> GateJudgement:
    found = question_of(run.head.experiment).judge_all_points(run)
    assert found
    return found


def fails(data: PointData) -> bool:
    return question_of(data.experiment).stops_elsewhere([data]) is not None


def judged(run: SimulatedRun) -> GateJudgement:
    return judged_whole(run.whole)


def test_the_same_passes_and_says_how_much_there_could_be() -> None:
    run = gate_run(SimulatedVariant())
    found = judged(run)
    assert found.answer is GateAnswer.PASS, found
    assert found.headline.startswith("3 checks within limits; closest: /hello.txt ")
    assert {claim.answer for claim in found.claims} == {"not worse"}
    assert found.notes == []
    stop = decide(run.data, elapsed_s=0.0)
    assert stop
    assert stop.reason == "question"


def test_more_cpu_time_fails_and_names_the_endpoint() -> None:
    run = gate_run(SimulatedVariant(server_cpu_us=24.0))
    found = judged(run)
    assert found.answer is GateAnswer.FAIL
    assert re.match(r"/hello.txt needs \d+% more CPU per request \(95% CI \+", found.headline)
    (worse,) = found.of("worse")
    assert worse.metric == "server_cpu_us"
    assert worse.worse
    assert worse.worse.low < 1.2 < worse.worse.high
    assert decide(run.data, elapsed_s=0.0)


def test_many_times_worse_is_reported_as_a_factor_and_one_tolerance_once() -> None:
    found = judged(gate_run(SimulatedVariant(server_cpu_us=300.0, throughput_rps=5_000)))
    assert re.fullmatch(
        r"/hello.txt needs 1\d× the CPU per request \(95% CI 1\d–1\d×; limit 1.05×\); "
        "throughput of /hello.txt is beyond its limit, too",
        found.headline,
    ), found.headline


def test_only_a_gate_that_fails_ends_the_other_endpoints() -> None:
    slower = gate_run(SimulatedVariant(server_cpu_us=24.0))
    assert fails(slower.data)
    few = [record for record in slower.records if record.round is not None and record.round < 5]
    assert not fails(point_data(few, slower.head.experiment))
    same = gate_run(SimulatedVariant())
    assert not fails(same.data)
    without = same.head.experiment.replace(asks=CompareSettings())
    assert not fails(point_data(slower.records, without))


def test_an_open_claim_s_interval_holds_its_limit_though_claims_share_the_risk() -> None:
    """Alone it would be called worse; one of three has a third of the risk, and is open."""
    run = gate_run(SimulatedVariant(server_cpu_us=NEARLY_WORSE_US))
    settings = run.head.experiment.asks_as(GateSettings)
    claims = claims_of(run.data, "/hello.txt", settings, run.head.experiment.measure.max_rounds)
    (alone,) = (each for each in claims if each.rule.name == "server_cpu_us")
    answer = alone.ask(run.head.experiment.measure, RISK, claims=3)
    assert answer
    assert answer.answer == "no"
    found = judged(run)
    (cpu,) = found.of("inconclusive")
    assert cpu.worse
    assert cpu.worse.low < 1 + cpu.tolerance < cpu.worse.high
    assert cpu.worse.low < 1 / answer.at_most
    assert cpu.worse.high == pytest.approx(1 / answer.at_least)


def test_what_is_better_passes_with_a_range_below_zero() -> None:
    found = judged(gate_run(SimulatedVariant(server_cpu_us=15.0, throughput_rps=80_000)))
    assert found.answer is GateAnswer.PASS
    cpu = next(claim for claim in found.claims if claim.metric == "server_cpu_us")
    assert change_range(cpu).startswith("−")


def test_a_baseline_that_differs_from_itself_is_reported() -> None:
    found = judged(gate_run(SimulatedVariant(), again=SimulatedVariant(server_cpu_us=14.0)))
    assert found.answer is GateAnswer.INCONCLUSIVE
    assert any("two copies of baseline differ by up to" in note for note in found.notes)
    assert "two copies of baseline differ by up to" in found.headline


def test_too_few_rounds_report_nothing_and_the_run_goes_on() -> None:
    run = gate_run(SimulatedVariant())
    few = [record for record in run.records if record.round is not None and record.round < 5]
    found = judged_whole(RunData(run.head, few))
    assert found.answer is GateAnswer.INCONCLUSIVE
    assert all(claim.worse is None for claim in found.claims)
    assert decide(point_data(few, run.head.experiment), elapsed_s=0.0) is None


def test_too_few_valid_rounds_name_the_rule_that_left_most_out_and_what_to_do() -> None:
    run = gate_run(SimulatedVariant())
    windows = [Window(at_s=float(at), length_s=1.0, completed=9_000 * (at > 0)) for at in range(4)]
    client = {"stalled_s": 0.9}
    stalled = load_with(windows=windows, latency_us={"p50": 1_500.0}, client=client)
    records = [
        stalled(record)
        if isinstance(record, SlotRecord) and record.variant == HEAD and record.round < 4
        else record
        for record in run.records
        if record.round is None or record.round < 8
    ]
    found = judged_whole(RunData(run.head, records))
    open_ = found.of("inconclusive")
    assert open_, found
    assert all("valid rounds, too few" in claim.why for claim in open_), found
    assert all("most slots broke the rule machine-stalled" in claim.why for claim in open_)
    assert "Look for what stops programs here" in found.notes[0], found.notes
    assert "most slots broke the rule machine-stalled" in found.headline


def test_a_percentile_that_lacks_responses_is_not_evaluated_and_the_rest_decides() -> None:
    run = gate_run(SimulatedVariant())
    few = load_with(requests={"completed": 30})
    records = [few(record) if isinstance(record, SlotRecord) else record for record in run.records]
    found = judged_whole(RunData(run.head, records))
    assert found.answer is GateAnswer.PASS
    (claim,) = found.of("not asked")
    assert claim.metric == "latency_p99_us"
    assert "299" in claim.why


def test_errors_make_it_invalid_whatever_the_figures() -> None:
    found = judged(gate_run(SimulatedVariant(wrong_status=500)))
    assert found.answer is GateAnswer.INVALID
    assert found.notes


def test_no_answer_is_said_once_with_its_cause_and_what_to_do() -> None:
    invalidated = SimulatedVariant(wrong_status=500)
    found = judged(gate_run(invalidated, baseline=invalidated, again=invalidated))
    assert found.headline.startswith("/hello.txt: variant baseline answered 500 ")
    cause = found.headline.removeprefix("/hello.txt: ")
    assert not any(cause in note for note in found.notes)
    (note,) = found.notes
    assert note.startswith("The same holds for baseline again and head. See why its program")
    assert {change_range(claim) for claim in found.claims} == {"invalid"}
    assert found.claims[0].why == cause


def test_bounds_that_say_nothing_are_no_figures() -> None:
    claim = judged(gate_run(SimulatedVariant())).claims[0]
    ranges = {
        (1e-9, 1e200): "unknown",
        (0.0, 3.0): "unknown",
        (2.0, 1e9): "2.0× or more",
        (1.03, 1.5): "+3.0 to +50%",
        (1.03, 2.5): "1.0–2.5×",
    }
    for (low, high), reported in ranges.items():
        wide = Interval(low=low, estimate=2.0, high=high)
        assert change_range(claim.model_copy(update={"worse": wide})) == reported


def test_less_throughput_is_a_change_below_zero() -> None:
    claim = next(
        claim
        for claim in judged(gate_run(SimulatedVariant())).claims
        if claim.metric == "throughput_rps"
    )
    assert limit_words(claim) == "−5%"
    for (low, high), reported in {
        (1.25, 1.6): "−38 to −20%",
        (4.0, 5.0): "0.20–0.25×",
        (2.0, 1e9): "0.50× or less",
    }.items():
        worse = Interval(low=low, estimate=low, high=high)
        assert change_range(claim.model_copy(update={"worse": worse})) == reported


def test_a_throughput_may_fall_by_the_limit_and_no_further() -> None:
    """5% less is 1/0.95 times worse."""
    settings = GateSettings(worse_than={"throughput_rps": 0.05})
    (claim,) = claims_of(gate_run(SimulatedVariant()).data, "/", settings, 30)
    assert claim.worse_share == pytest.approx(1 / 0.95 - 1)
    with pytest.raises(ValueError, match="nothing is less by 100% or more"):
        GateSettings(worse_than={"throughput_rps": 1.0})


def test_a_client_at_its_limit_leaves_the_answer_to_cpu_time() -> None:
    busy = SimulatedVariant(busy=0.99)
    variants = {BASELINE: busy, BASELINE_AGAIN: busy, HEAD: busy}
    run = simulated_run(variants, rounds=ROUNDS, restart_sd=0.008, slot_sd=0.008)
    found = judged(run.asking(GateSettings()))
    assert [claim.answer for claim in found.claims] == ["not worse", "not asked", "not asked"]
    assert found.answer is GateAnswer.PASS


def test_points_share_the_error_rate() -> None:
    run = gate_run(SimulatedVariant())
    data = run.head.experiment.model_dump(exclude_unset=True)
    many = Experiment.model_validate(
        data | {"gate": GateSettings(), "factors": {"load.paths": [["/hello.txt"], ["/1KB.txt"]]}}
    )
    gates = [plan.experiment.asks_as(GateSettings) for plan in plan_points(many)]
    assert [gate.endpoints for gate in gates] == [2, 2]


def test_limits_of_a_branch_s_own_stand_with_the_answer() -> None:
    run = gate_run(SimulatedVariant())
    assert judged(run).notes == []
    (note,) = judged(run.asking(GateSettings(rules_differ=True))).notes
    assert "the baseline has no webdyno.toml, or one with other limits" in note
