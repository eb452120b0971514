"""What one long stretch of load shows: stalls, whose they are, drifts and growth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builders import SimulatedVariant, simulated_run
from evidence.stretches import Truth, stretch
from variants import further
from webdyno.comparison import judge
from webdyno.core.judgement import Verdict
from webdyno.core.records import Record
from webdyno.evidence.long_look import look_at, warnings_words
from webdyno.evidence.point_data import PointData

RUNS = 30
PERIODIC = Truth(every_s=6.0, stall_s=1.0)


@pytest.mark.parametrize(
    ("every_s", "stall_s", "looked_s"),
    [(6.0, 1.0, 12.0), (6.0, 1.0, 27.0), (2.0, 0.05, 12.0), further(60.0, 3.0, 300.0)],
)
def test_the_interval_of_the_stalls_share_holds_the_truth(
    every_s: float, stall_s: float, looked_s: float
) -> None:
    truth = Truth(every_s=every_s, stall_s=stall_s, looked_s=looked_s)
    held = seen = 0
    for seed in range(RUNS):
        stalls = look_at(stretch(truth, seed=seed)).stalls
        if stalls is None:
            continue
        seen += 1
        held += stalls.share.low <= stall_s / every_s <= stalls.share.high
    assert seen >= 0.9 * RUNS
    assert held >= 0.93 * seen


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_a_steady_server_is_accused_of_nothing(noise: float) -> None:
    accused = 0
    for seed in range(100):
        look = look_at(stretch(Truth(noise=noise, pages=50_000.0), seed=seed))
        accused += bool(look.stalls or look.drifts or look.growth)
    assert accused <= 2


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        ({"waited": True}, "other-programs"),
        ({"stolen": True}, "hypervisor"),
        ({"stopped": True, "every_s": 9.0}, "stopped"),
        ({"client_paused": True}, "client"),
    ],
)
def test_what_others_did_isnt_the_servers_own(evidence: dict[str, Any], cause: str) -> None:
    look = look_at(stretch(replace(PERIODIC, **evidence)))
    assert look.stalls is None
    assert {stall.cause for stall in look.excused} == {cause}


def test_a_sleeping_server_isnt_excused_by_others_who_use_its_cpu() -> None:
    record = stretch(replace(PERIODIC, waited=True))
    asleep = [sample.model_copy(update={"waited_s": 0.0}) for sample in record.samples]
    assert look_at(record.model_copy(update={"samples": asleep})).stalls is not None


def test_servers_that_are_stopped_again_and_again_are_how_they_work() -> None:
    stalls = look_at(stretch(replace(PERIODIC, stopped=True))).stalls
    assert stalls is not None
    assert stalls.count == 2


@pytest.mark.parametrize(
    ("bytes_per_s", "looked_s", "pages"), [(1e6, 12.0, 50_000.0), (1e6 / 60, 90.0, 10_000.0)]
)
def test_a_leak_is_found_with_its_slope(bytes_per_s: float, looked_s: float, pages: float) -> None:
    found = 0
    for seed in range(RUNS):
        truth = Truth(leak_bytes_per_s=bytes_per_s, pages=pages, looked_s=looked_s)
        growth = look_at(stretch(truth, seed=seed)).growth
        if growth is not None:
            found += growth.bytes_per_s.low <= bytes_per_s <= growth.bytes_per_s.high
    assert found >= 0.9 * RUNS


def test_a_leak_has_its_slope_where_readings_come_now_and_then() -> None:
    record, rng = stretch(Truth(leak_bytes_per_s=1e6)), np.random.default_rng(0)
    seldom = [
        it.model_copy(update={"memory_bytes": it.memory_bytes if rng.random() < 0.6 else None})
        for it in record.samples
    ]
    growth = look_at(record.model_copy(update={"samples": seldom})).growth
    assert growth is not None
    assert growth.bytes_per_s.estimate == pytest.approx(1e6, rel=1e-4)


@pytest.mark.parametrize("looked_s", [90.0, 110.0, 130.0, 151.0])
def test_a_slope_is_no_surer_than_the_pages_in_which_memory_is_counted(looked_s: float) -> None:
    record = stretch(Truth(leak_bytes_per_s=1e6 / 60, pages=0.0, looked_s=looked_s))
    paged = [
        sample.model_copy(update={"memory_bytes": sample.memory_bytes // 4096 * 4096})
        for sample in record.samples
        if sample.memory_bytes is not None
    ]
    growth = look_at(record.model_copy(update={"samples": paged})).growth
    assert growth is not None
    assert growth.bytes_per_s.low <= 1e6 / 60 <= growth.bytes_per_s.high


def test_memory_that_falls_back_doesnt_leak() -> None:
    record = stretch(Truth(leak_bytes_per_s=5e6))
    collected = [
        it.model_copy(update={"memory_bytes": it.memory_bytes and 50_000_000 + n % 60 * 400_000})
        for n, it in enumerate(record.samples)
    ]
    assert look_at(record.model_copy(update={"samples": collected})).growth is None


def test_a_stop_that_lasts_to_the_end_is_a_stall() -> None:
    """Of what hangs shortly before the load ends no request has timed out yet."""
    record = stretch(Truth(looked_s=12.0))
    served = [n if at < 360 else 0 for at, n in enumerate(record.responses)]
    look = look_at(record.model_copy(update={"responses": served}))
    assert look.stalls is not None
    assert look.stalls.length_s == pytest.approx(3.0, abs=0.1)


def test_memory_that_grows_while_nothing_is_answered_is_judged() -> None:
    record = stretch(Truth(looked_s=12.0, leak_bytes_per_s=5e6))
    served = [n if at < 200 else 0 for at, n in enumerate(record.responses)]
    assert look_at(record.model_copy(update={"responses": served})).growth is None


def test_stalls_that_others_caused_are_reported_as_excluded() -> None:
    said = warnings_words(look_at(stretch(replace(PERIODIC, waited=True))))
    assert said.startswith("no stalls of 50 ms or more")
    assert said.endswith("excluded: 2 stalls, 2 s in all, as other programs had the servers' CPUs")


def test_only_what_could_be_seen_is_said_to_be_absent() -> None:
    whole = look_at(stretch(Truth(looked_s=20.0)))
    assert warnings_words(whole).startswith("no stalls of 50 ms or more, drift or leak in 20 s;")
    rare = look_at(stretch(Truth(looked_s=20.0, throughput_rps=2.0)))
    assert warnings_words(rare).startswith("no leak in 20 s, too little to judge stalls and drift;")
    unread = stretch(Truth(looked_s=0.05)).model_copy(update={"samples": []})
    assert "too little to judge stalls, drift and leak;" in warnings_words(look_at(unread))


def test_a_step_is_a_drift() -> None:
    look = look_at(stretch(Truth(drifts_to=0.8)))
    rates = [drift for drift in look.drifts if drift.metric == "throughput_rps"]
    assert len(rates) == 1
    assert rates[0].change.low < 0.8 < rates[0].change.high
    assert rates[0].at_s is not None
    assert abs(rates[0].at_s - 6.0) < 1.0


def test_stalls_of_one_variant_are_counted_in() -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, slot_sd=0.005)
    looks: list[Record] = [
        stretch(replace(PERIODIC, looked_s=27.0), variant="apache"),
        stretch(Truth(), variant="nginx"),
    ]
    before, after = judge(run.data), judge(PointData.of(run.head, [*run.records, *looks]))
    rate = next(it for it in after.comparisons if it.metric == "throughput_rps")
    unseen = next(it for it in before.comparisons if it.metric == "throughput_rps")
    assert rate.ratio is not None
    assert unseen.ratio is not None
    assert rate.ratio.estimate == pytest.approx(unseen.ratio.estimate * 5 / 6, rel=0.01)
    assert rate.verdict is Verdict.SLOWER
    assert "stalls of" in after.headline
    assert [it.rule for it in after.warnings if it.variant == "apache"].count("stalls") == 1
    assert len(after.looks) == 2


def test_a_drift_counts_against_the_verdict() -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, slot_sd=0.005)
    look = stretch(Truth(drifts_to=0.7), variant="apache")
    rate = judge(PointData.of(run.head, [*run.records, look])).comparisons[0]
    assert rate.verdict is Verdict.INCONCLUSIVE
    assert [bias.cause for bias in rate.biases] == ["drift"]
