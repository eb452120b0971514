"""A gate at an arrival rate: CPU per request alone, and no pass for what keeps requests waiting."""

from dataclasses import replace

import pytest

from builders import SimulatedRun, SimulatedVariant
from evidence.rates import at_rate
from webdyno.comparison import question_of
from webdyno.core.experiment import Experiment
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD, GateAnswer, GateJudgement
from webdyno.core.load_result import SendDelay
from webdyno.core.records import Record, SlotRecord
from webdyno.core.variant import Variant
from webdyno.questions.gate.settings import TOLERANCES_AT_RATE, GateSettings

PLAIN = SimulatedVariant(server_cpu_us=100.0, latency_p50_us=300.0)
GATHERS = replace(PLAIN, server_cpu_us=60.0, latency_p50_us=9_000.0)
AT_RATE = GateSettings(worse_than=TOLERANCES_AT_RATE)


def gate_run(
    head: SimulatedVariant, gate: GateSettings = AT_RATE, *, noise: float = 0.008, seed: int = 1
) -> SimulatedRun:
    variants = {BASELINE: PLAIN, BASELINE_AGAIN: PLAIN, HEAD: head}
    run = at_rate(500, variants, rounds=10, noise=noise, seed=seed)
    return run.asking(gate)


def judged(run: SimulatedRun) -> GateJudgement:
    found = question_of(run.head.experiment).judge_all_points(run.whole)
    assert found
    return found


def test_the_same_passes_and_says_at_which_rate() -> None:
    found = judged(gate_run(PLAIN))
    assert (found.answer, found.rate_rps) == (GateAnswer.PASS, 500)
    assert [claim.metric for claim in found.claims] == ["server_cpu_us"]
    assert found.notes == []


def test_more_cpu_fails_whether_or_not_requests_wait() -> None:
    for latency_us in (300.0, 9_000.0):
        found = judged(gate_run(replace(PLAIN, server_cpu_us=120, latency_p50_us=latency_us)))
        assert found.answer is GateAnswer.FAIL
        assert found.headline.startswith("/hello.txt needs ")


@pytest.mark.parametrize("cpu_us", [60.0, 100.0], ids=["cheaper", "as dear"])
def test_who_keeps_requests_waiting_does_not_pass(cpu_us: float) -> None:
    found = judged(gate_run(replace(GATHERS, server_cpu_us=cpu_us)))
    assert found.answer is GateAnswer.INVALID
    said = "/hello.txt: requests of head wait longer than those of baseline: p50 "
    assert found.headline.startswith(said), found.headline
    assert any(
        "give latency a limit of its own: --fail-if 'p50 > +100%'" in it for it in found.notes
    )


def test_latency_with_a_limit_of_its_own_is_judged_by_that() -> None:
    limits = {**TOLERANCES_AT_RATE, "latency_p50_us": 0.5, "latency_p99_us": 0.5}
    found = judged(gate_run(GATHERS, GateSettings(worse_than=limits)))
    assert found.answer is GateAnswer.FAIL
    assert {claim.metric for claim in found.of("worse")} == {"latency_p50_us", "latency_p99_us"}
    assert {claim.metric for claim in found.of("not worse")} == {"server_cpu_us"}


def test_what_the_client_sent_late_is_no_waiting() -> None:
    late = SendDelay(p50=8_700.0, p99=19_000.0, max=20_000.0)

    def sent_late(record: Record) -> Record:
        if not isinstance(record, SlotRecord) or record.variant != HEAD:
            return record
        return record.replace(load=record.load.replace(send_delay_us=late))

    run = gate_run(replace(GATHERS, server_cpu_us=100.0))
    found = judged(SimulatedRun(run.head, [sent_late(record) for record in run.records]))
    assert found.answer is GateAnswer.PASS


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (replace(PLAIN, throughput_rps=300), "500 req/s were offered, but "),
        (replace(PLAIN, wrong_status=500, wrong_share=0.5), "500"),
    ],
    ids=["rate not kept", "failures"],
)
def test_what_has_no_cost_at_the_rate_has_no_answer(head: SimulatedVariant, says: str) -> None:
    found = judged(gate_run(head))
    assert found.answer is GateAnswer.INVALID
    assert says in found.headline


def test_at_full_speed_nothing_is_said_of_waiting() -> None:
    run = gate_run(GATHERS)
    closed = run.head.experiment.load.replace(loop="closed", rate_per_s=None)
    experiment = run.head.experiment.replace(load=closed)
    found = judged(SimulatedRun(run.head.replace(experiment=experiment), run.records))
    assert (found.answer, found.rate_rps) == (GateAnswer.PASS, None)


def test_noise_makes_nobody_wait() -> None:
    """Latency that differs by a quarter from start to start: of 60 gates, 2.5% may be wrong."""
    wrong = 0
    for seed in range(60):
        found = judged(gate_run(PLAIN, noise=0.25, seed=seed))
        wrong += any("wait longer" in claim.why for claim in found.claims)
    assert wrong <= 2


def an_experiment(gate: dict[str, object], loop: str = "open") -> Experiment:
    return Experiment.model_validate(
        {
            "title": "a gate",
            "question": "worse?",
            "site": "static",
            "load": {"loop": loop, "rate_per_s": 500.0} if loop == "open" else {"loop": loop},
            "variants": {name: Variant(stack="nginx") for name in (BASELINE, BASELINE_AGAIN, HEAD)},
            "gate": gate,
        }
    )


def test_a_file_has_the_limits_that_suit_its_load() -> None:
    for loop, limits in (("open", TOLERANCES_AT_RATE), ("closed", GateSettings().worse_than)):
        assert an_experiment({}, loop).asks_as(GateSettings).worse_than == limits
    own = an_experiment({"worse_than": {"latency_p99_us": 0.25}}).asks_as(GateSettings)
    assert own.worse_than == {"latency_p99_us": 0.25}


def test_throughput_has_no_limit_at_a_rate() -> None:
    with pytest.raises(ValueError, match="no limit on throughput, which is that rate"):
        an_experiment({"worse_than": {"throughput_rps": 0.05}})
