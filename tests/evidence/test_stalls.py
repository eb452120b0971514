"""When requests failed in a long look, and when they were answered slowly, by whose doing."""

from dataclasses import replace

import numpy as np
import pytest

from builders import SimulatedVariant, simulated_run
from evidence.stretches import WINDOW_S, Truth, stretch
from webdyno.comparison import judge
from webdyno.core.judgement import Judgement, Verdict
from webdyno.core.records import LongLookRecord
from webdyno.evidence.long_look import look_at
from webdyno.evidence.point_data import PointData
from webdyno.evidence.stalls import failing_in, slow_in

LOOKED = Truth(looked_s=20.0)


def failing(begin_s: float, end_s: float, share: float = 1.0, **said: object) -> LongLookRecord:
    """Give a look in which so many requests fail for a while."""
    record = stretch(LOOKED, variant="apache")
    begin, end = round(begin_s / WINDOW_S), round(end_s / WINDOW_S)
    during = [begin <= window < end for window in range(len(record.responses))]
    counts = list(zip(record.responses, during, strict=True))
    failed = [round(n * share) if fails else 0 for n, fails in counts]
    answered = [n - bad for n, bad in zip(record.responses, failed, strict=True)]
    return record.model_copy(update={"responses": answered, "failed": failed, **said})


def judged(look: LongLookRecord) -> Judgement:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, slot_sd=0.005)
    return judge(PointData.of(run.head, [*run.records, look]))


def test_it_is_reported_when_all_requests_began_to_fail() -> None:
    record = failing(14.0, 20.0, said="accept: Too many open files")
    (found,) = failing_in(record)
    assert (found.at_s, found.share, found.to_the_end) == (14.0, 1.0, True)
    assert found.answered_before == sum(record.responses)
    answer = judged(record)
    assert answer.comparisons[0].verdict is Verdict.INVALID
    (said,) = [it for it in answer.warnings if it.rule == "fails-later"]
    assert "after 14 s" in said.what
    assert "100% of the requests fail, to the end: accept: Too many open files" in said.what


def test_servers_that_hang_fail_from_their_last_answer_on() -> None:
    """Requests time out 5 s later, all at once; nothing else fails any more."""
    record = failing(12.0, 20.0)
    timed_out = [0] * len(record.responses)
    timed_out[round(17.0 / WINDOW_S)] = 8
    record = record.model_copy(update={"failed": timed_out})
    (found,) = failing_in(record)
    assert (found.at_s, found.share, found.to_the_end) == (12.0, 1.0, True)
    assert judged(record).comparisons[0].verdict is Verdict.INVALID


def test_what_was_seen_before_still_counts() -> None:
    look = look_at(failing(14.0, 20.0))
    assert (look.looked_s, look.stalls, look.drifts) == (14.0, None, [])


def test_failures_for_a_while_are_no_stall_and_invalidate_nothing() -> None:
    record = failing(5.0, 7.0)
    assert look_at(record).stalls is None
    answer = judged(record)
    assert answer.comparisons[0].verdict is not Verdict.INVALID
    assert [it.severity for it in answer.warnings if it.rule == "fails-later"] == ["note"]


def test_failures_far_apart_are_reported_apart() -> None:
    record = failing(5.0, 6.0, share=0.1)
    later = failing(12.0, 13.0, share=0.5).failed
    both = [a + b for a, b in zip(record.failed, later, strict=True)]
    found = failing_in(record.model_copy(update={"failed": both}))
    assert [it.at_s for it in found] == [5.0, 12.0]


@pytest.mark.parametrize(
    "words",
    [
        "this client has no local port left",
        "Cannot assign requested address",
        "Too many open files",
    ],
)
def test_a_client_without_ports_is_blamed_itself(words: str) -> None:
    record = failing(14.0, 20.0)
    sample = f"connect to 127.0.0.1:80: {words} (os error 99)"
    load = record.load.model_copy(update={"failure_samples": [sample]})
    answer = judged(record.model_copy(update={"load": load}))
    assert answer.comparisons[0].verdict is not Verdict.INVALID
    (said,) = [it for it in answer.warnings if it.rule == "client-out-of-ports"]
    assert "after 14 s" in said.what
    assert not [it for it in answer.warnings if it.rule == "fails-later"]


def test_how_servers_died_is_reported_with_its_time() -> None:
    answer = judged(failing(14.0, 20.0, died="app ended by itself with signal 9"))
    (said,) = [it for it in answer.warnings if it.rule == "died-later"]
    assert "signal 9, after 14 s of load" in said.what
    assert answer.comparisons[0].verdict is Verdict.INVALID


def test_descriptors_that_become_more_are_found_with_their_number_per_request() -> None:
    record = stretch(LOOKED)
    leaking = [
        it.model_copy(update={"descriptors": 40 + int(it.at_s * 20) + n % 7})
        for n, it in enumerate(record.samples)
    ]
    steady = [
        it.model_copy(update={"descriptors": 40 + n % 7}) for n, it in enumerate(record.samples)
    ]
    found = look_at(record.model_copy(update={"samples": leaking})).more_open
    assert found is not None
    assert found.per_request.low <= 1e-3 <= found.per_request.high
    assert look_at(record.model_copy(update={"samples": steady})).more_open is None


RUNS = 15
SLOW = Truth(every_s=6.0, stall_s=1.0, looked_s=27.0, slow_level=0.4)


@pytest.mark.parametrize("level", [0.2, 0.4, 0.6])
def test_a_slow_second_in_six_is_found(level: float) -> None:
    for seed in range(RUNS):
        look = look_at(stretch(replace(SLOW, slow_level=level), seed=seed))
        assert look.stalls is None
        assert look.slow is not None
        assert look.slow.level == pytest.approx(level, abs=0.05)
        assert look.slow.stretches.count in {4, 5}
        assert look.slow.stretches.length_s == pytest.approx(1.0, abs=0.1)
        assert look.slow.stretches.every_s is not None
        assert look.slow.stretches.every_s.estimate == pytest.approx(6.0, abs=0.1)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_noise_isnt_slow(noise: float, correlation: float) -> None:
    rng, accused, alone = np.random.default_rng(1), 0, stretch(Truth()).replace(samples=[])
    for _ in range(100):
        logs = np.zeros(800)
        for n, fresh in enumerate(rng.normal(0, noise * (1 - correlation**2) ** 0.5, len(logs))):
            logs[n] = correlation * logs[n - 1] + fresh
        responses = rng.poisson(500 * np.exp(logs)).tolist()
        accused += bool(slow_in(alone.replace(responses=responses), []))
    assert accused <= 2


@pytest.mark.parametrize("truth", [replace(SLOW, slow_level=0.0), Truth(drifts_to=0.6)])
def test_neither_stalls_nor_drifts_are_slow_stretches(truth: Truth) -> None:
    assert not any(look_at(stretch(truth, seed=seed)).slow for seed in range(RUNS))


@pytest.mark.parametrize("evidence", [{"waited": True}, {"stolen": True}])
def test_what_others_slowed_isnt_the_servers_own(evidence: dict[str, bool]) -> None:
    assert look_at(stretch(replace(SLOW, **evidence))).slow is None


def test_slow_stretches_count_against_the_verdict() -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, slot_sd=0.005)
    judged = judge(PointData.of(run.head, [*run.records, stretch(SLOW, variant="apache")]))
    rate = judged.comparisons[0]
    assert rate.verdict is Verdict.INCONCLUSIVE
    assert [bias.cause for bias in rate.biases] == ["slow-stretches"]
    (said,) = [it for it in judged.warnings if it.rule == "slow-stretches"]
    assert "slow times of 1" in said.what
    assert "% of the usual throughput" in said.what
