"""The rules about servers that haven't settled."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, sqrt
from random import Random

import pytest

from builders import SimulatedRun, simulated_run, with_completed
from validity.broken import ROUNDS, THIRD_S, VARIANTS, found_in, run_with, with_thirds
from variants import further
from webdyno.core.measure import Measure
from webdyno.core.records import Record, SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity.over_time import TRENDS

RUNS = 1_000
THIRD = 7_000
"""Responses in a third of a slot."""
HEAD = simulated_run(VARIANTS, rounds=1).head


@pytest.mark.parametrize(
    ("change_per_slot", "severity"), [(0.0, None), (0.008, "note"), (-0.03, "note")]
)
def test_a_trend_over_the_round_is_reported(change_per_slot: float, severity: str | None) -> None:
    def drift(slot: SlotRecord) -> SlotRecord:
        completed = 20_000 * (1 + change_per_slot * slot.slot + 0.001 * (slot.round % 3))
        return with_completed(slot, completed)

    warning = found_in(run_with(drift)).get("trend")
    assert (warning.severity if warning else None) == severity
    if warning:
        assert warning.variant == "apache"
        assert ("rises" if change_per_slot > 0 else "falls") in warning.what


@pytest.mark.parametrize(
    ("change", "severity"), [(0.0, None), (0.03, None), (0.08, "note"), (-0.2, "note")]
)
def test_a_trend_inside_the_slots_is_reported(change: float, severity: str | None) -> None:
    def drift(slot: SlotRecord) -> SlotRecord:
        last = round(THIRD * (1 + change + 0.002 * (slot.round % 3)))
        return with_thirds(slot, (THIRD, THIRD, last))

    warning = found_in(run_with(drift)).get("slot-trend")
    assert (warning.severity if warning else None) == severity
    if warning:
        assert warning.variant == "apache"
        assert ("rises" if change > 0 else "falls") in warning.what


@pytest.mark.parametrize(
    ("warmup_s", "own_s", "fix"),
    [
        pytest.param(1, None, "--set measure.warmup_s=5.", id="long enough for most"),
        pytest.param(10, None, "--set measure.warmup_s=20.", id="twice what it had"),
        pytest.param(15, 15, "--set variants.apache.warmup_s=30.", id="its own"),
    ],
)
def test_a_longer_warm_up_is_advised(warmup_s: float, own_s: float | None, fix: str) -> None:
    run = simulated_run(VARIANTS, rounds=ROUNDS, measure=Measure(seed=1, warmup_s=warmup_s))
    experiment = run.head.experiment
    apache = experiment.variants["apache"].replace(warmup_s=own_s)
    changed = experiment.replace(variants=experiment.variants | {"apache": apache})
    records = [
        with_completed(record, 20_000 * (1 + 0.02 * record.slot))
        if isinstance(record, SlotRecord) and record.variant == "apache"
        else record
        for record in run.records
    ]
    found = found_in(SimulatedRun(run.head.replace(experiment=changed), records))
    assert found["trend"].fix.endswith(fix)


def test_two_slots_of_a_round_show_a_trend_as_well() -> None:
    """As many as rounds have after a pilot."""

    def climb(slot: SlotRecord) -> SlotRecord:
        throughput_rps = 20_000 * (1 + 0.03 * slot.slot + 0.001 * (slot.round % 3))
        completed = round(throughput_rps * slot.load.measured_s)
        requests = slot.load.requests.model_copy(update={"completed": completed})
        return slot.model_copy(update={"load": slot.load.model_copy(update={"requests": requests})})

    run = run_with(climb)
    measured = run.data
    ends = {
        (this_round.record.round, slot.slot)
        for this_round in measured.rounds
        for variant in VARIANTS
        for slot in this_round.of(variant)[:: len(this_round.of(variant)) - 1]
    }
    kept = [
        record
        for record in run.records
        if not isinstance(record, SlotRecord)
        or record.phase != "measure"
        or (record.round, record.slot) in ends
    ]
    assert "trend" in found_in(replace(run, records=kept))


def test_an_open_loops_rate_is_its_timetables() -> None:
    """It falls and rises in all slots alike."""

    def timetable(slot: SlotRecord) -> SlotRecord:
        return with_thirds(slot, (THIRD, THIRD, round(THIRD * 0.9)), loop="open")

    assert not {"trend", "slot-trend"} & found_in(run_with(timetable)).keys()


def test_in_an_open_loop_servers_settle_if_an_answer_costs_less_and_less() -> None:
    def cheaper(slot: SlotRecord) -> SlotRecord:
        cpu_s = slot.servers.cpu_user_s * (1 - 0.03 * slot.slot + 0.001 * (slot.round % 3))
        servers = slot.servers.model_copy(update={"cpu_user_s": cpu_s})
        load = slot.load.model_copy(
            update={"loop": "open", "offered_rps": slot.load.throughput_rps}
        )
        return slot.model_copy(update={"servers": servers, "load": load})

    warning = found_in(run_with(cheaper))["trend"]
    assert "what a second of its CPU time answers rises" in warning.what


def test_thirds_of_a_few_latencies_report_nothing() -> None:
    """The first responses come late in them, however settled the server is."""

    def slow(slot: SlotRecord) -> SlotRecord:
        times = slot.load.latency_us.model_copy(update={"mean": THIRD_S * 1e6 / 10})
        return with_thirds(slot, (50, 64, 64), latency_us=times)

    assert "slot-trend" not in found_in(run_with(slow))


def test_noise_is_no_trend() -> None:
    assert not {"trend", "slot-trend"} & found_in(run_with(lambda slot: slot)).keys()


def lognormal(rng: Random) -> float:
    """Noise of a third."""
    return exp(rng.gauss(0, 0.2))


def hiccups(rng: Random) -> float:
    """Noise of a third that loses half of its responses now and then."""
    return exp(rng.gauss(0, 0.01)) * (0.5 if rng.random() < 0.05 else 1.0)


@pytest.mark.parametrize("noise", [lognormal, further(hiccups)])
def test_noise_inside_slots_is_seldom_taken_for_a_trend(noise: Callable[[Random], float]) -> None:
    run, rng = run_with(lambda slot: slot), Random(0)
    alarms = sum(bool(slot_trends(noisy(run, noise, rng))) for _ in range(RUNS))
    assert alarms / RUNS <= 0.01 + 2 * sqrt(0.01 * 0.99 / RUNS)


def noisy(run: SimulatedRun, noise: Callable[[Random], float], rng: Random) -> list[Record]:
    """The run's records with noise in every third of every slot."""

    def thirds() -> tuple[int, int, int]:
        first, middle, last = (round(THIRD * noise(rng)) for _ in range(3))
        return first, middle, last

    return [
        with_thirds(record, thirds()) if isinstance(record, SlotRecord) else record
        for record in run.records
    ]


def slot_trends(records: list[Record]) -> list[str]:
    """The variants with a trend inside their slots."""
    evidence = PointData.of(HEAD, records)
    assert len(evidence.rounds) == ROUNDS
    (rule,) = (rule for rule in TRENDS if rule.name == "slot-trend")
    return [warning.variant for warning in rule.warnings(evidence) if warning.variant]
