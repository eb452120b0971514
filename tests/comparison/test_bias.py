"""Interference planted in a run's records: the truth has to lie inside the judge's bounds."""

import re
from collections.abc import Callable
from math import exp
from random import Random
from typing import Any

import numpy as np
import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from validity.broken import load_with, quiet_readings, with_thirds
from webdyno.comparison import judge
from webdyno.comparison.bias import CAUSES
from webdyno.comparison.sentences import with_verdict
from webdyno.core.base import ENDLESS
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.readings import Readings, StoppedUse
from webdyno.core.records import Record, SlotRecord
from webdyno.evidence.point_data import PointData

SHARE = 0.3
"""Of the slot's time, that interference takes."""
TOOK_S = 0.5

Plant = Callable[[Readings], dict[str, Any]]


def _servers(name: str, seconds: float) -> Plant:
    def changed(readings: Readings) -> dict[str, Any]:
        cpus = readings.host.servers
        more = cpus.model_copy(update={name: getattr(cpus, name) + seconds})
        return {"host": readings.host.model_copy(update={"servers": more})}

    return changed


def _pressed(readings: Readings) -> dict[str, Any]:
    assert readings.host.pressure
    pressure = readings.host.pressure.model_copy(update={"memory_s": SHARE * TOOK_S})
    return {"host": readings.host.model_copy(update={"pressure": pressure})}


def _left_over(readings: Readings) -> dict[str, Any]:
    busy = _servers("user_s", SHARE * 1.0)(readings)
    return {**busy, "other_variants_cpu_s": {"other": SHARE * 1.0}}


TOOK_FROM_CPUS = SHARE * 1.0
"""CPU seconds: servers use up to 0.8 s of CPU time in a slot of 0.5 s."""

INTERFERENCE: dict[str, Plant] = {
    "steal": _servers("steal_s", TOOK_FROM_CPUS),
    "other-work": _servers("user_s", TOOK_FROM_CPUS + 0.02),
    "left-over-work": _left_over,
    "memory-pressure": _pressed,
    "client-cpu-starved": lambda _: {"client_waiting": SHARE},
    "client-stalled": lambda _: {"stopped": StoppedUse(client_s=SHARE * TOOK_S)},
    "servers-stopped": lambda _: {"stopped": StoppedUse(servers_s=SHARE * TOOK_S)},
}


def test_every_interference_is_planted() -> None:
    assert set(CAUSES) == set(INTERFERENCE)


def slowed(slot: SlotRecord, factor: float) -> SlotRecord:
    """Take responses away, and the CPU time that they had cost."""
    load = slot.load
    completed = round(load.requests.completed * factor)
    drained = round(load.requests.drained * factor)
    requests = load.requests.model_copy(update={"completed": completed, "drained": drained})
    use = slot.servers.model_copy(
        update={
            "cpu_user_s": slot.servers.cpu_user_s * factor,
            "cpu_sys_s": slot.servers.cpu_sys_s * factor,
        }
    )
    changed = load.model_copy(update={"requests": requests})
    return slot.model_copy(update={"load": changed, "servers": use})


def with_interference(
    ratio: float, plant: Plant, *, effect: float, share_of_slots: float = 1.0, noise: float = 0.01
) -> Judgement:
    """Judge a run whose second variant lost `effect` of its throughput, as the evidence allows for.

    Its latency is longer by as much as fewer responses make them in a closed loop.
    """
    longer_us = 1_500.0 / ratio / (1 - effect)
    variants = {
        "baseline": SimulatedVariant(throughput_rps=20_000),
        "other": SimulatedVariant(throughput_rps=20_000 * ratio, latency_p50_us=longer_us),
    }
    run = simulated_run(variants, rounds=10, restart_sd=noise, slot_sd=noise, seed=3)
    random = Random(5)

    def change(slot: SlotRecord) -> SlotRecord:
        if slot.variant == "baseline" or random.random() >= share_of_slots:
            return slot.model_copy(update={"readings": quiet_readings(slot)})
        slow = slowed(slot, 1 - effect)
        quiet = quiet_readings(slow)
        return slow.model_copy(update={"readings": quiet.model_copy(update=plant(quiet))})

    return judged(run, change)


def judged(run: SimulatedRun, change: Callable[[SlotRecord], SlotRecord]) -> Judgement:
    """Judge a run all of whose slots are changed."""
    records: list[Record] = [
        change(record) if isinstance(record, SlotRecord) else record for record in run.records
    ]
    return judge(PointData.of(run.head, records))


def on(found: Judgement, metric: str) -> Comparison:
    """The comparison on a metric."""
    (comparison,) = (it for it in found.comparisons if it.metric == metric)
    return comparison


@pytest.mark.parametrize("cause", INTERFERENCE)
@pytest.mark.parametrize("effect", [0.0, 0.1, 0.25])
def test_the_true_ratio_lies_within_the_bounds(cause: str, effect: float) -> None:
    """Whether the interference cost nothing or nearly all that it can have cost."""
    found = on(with_interference(1.5, INTERFERENCE[cause], effect=effect), "throughput_rps")
    holds(found, 1.5)
    assert {bias.cause for bias in found.biases} == {cause}
    if effect:
        assert found.ratio is not None
        assert not found.ratio.low <= 1.5 <= found.ratio.high


@pytest.mark.parametrize("cause", INTERFERENCE)
def test_a_large_difference_survives_interference(cause: str) -> None:
    found = with_interference(4.0, INTERFERENCE[cause], effect=0.1)
    assert found.verdict is Verdict.FASTER
    (rate,) = (it for it in found.comparisons if it.metric == "throughput_rps")
    assert rate.tipping is not None
    assert rate.tipping.startswith("interference shifted ")
    assert rate.tipping in rate.why


@pytest.mark.parametrize("cause", INTERFERENCE)
def test_equals_are_not_called_slower_for_interference(cause: str) -> None:
    found = with_interference(1.0, INTERFERENCE[cause], effect=0.25)
    rate = on(found, "throughput_rps")
    assert rate.sampling_verdict is Verdict.SLOWER
    assert rate.verdict is Verdict.INCONCLUSIVE
    assert "looks slower, but interference could explain all of it" in found.headline


@pytest.mark.parametrize("cause", INTERFERENCE)
@pytest.mark.parametrize("effect", [0.0, 0.1, 0.25])
def test_the_true_latency_lies_within_the_bounds(cause: str, effect: float) -> None:
    found = on(with_interference(1.5, INTERFERENCE[cause], effect=effect), "latency_p50_us")
    holds(found, 1 / 1.5)
    assert {bias.cause for bias in found.biases} == {cause}
    assert found.ratio is not None
    assert (found.ratio.low <= 1 / 1.5 <= found.ratio.high) == (effect == 0)


def holds(found: Comparison, truth: float) -> None:
    """The worst-case CI has the truth in it."""
    assert found.worst_case is not None
    assert found.worst_case.low <= truth <= found.worst_case.high


CHARGED_S = 0.08
"""To servers that used 0.1 s of CPU time for themselves."""


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_stolen_time_that_was_charged_to_the_servers(share: float) -> None:
    """The cost per request looks nearly twice as high as it is, or as high as it is."""
    cost = on(_charged_run(share, _servers("steal_s", CHARGED_S)), "server_cpu_us")
    assert cost.sampling_verdict is (Verdict.SLOWER if share else Verdict.EQUIVALENT)
    holds(cost, 1.0)
    assert {bias.cause for bias in cost.biases} == {"steal"}


def test_stolen_time_that_a_kernel_keeps_apart_is_charged_to_nobody() -> None:
    assert not on(_charged_run(0.0, _kept_apart), "server_cpu_us").biases


def _kept_apart(readings: Readings) -> dict[str, Any]:
    host = _servers("steal_s", CHARGED_S)(readings)["host"]
    return {"host": host.model_copy(update={"steal_apart": True})}


def _charged_run(share: float, plant: Plant) -> Judgement:
    """Judge a run from whose second variant time was stolen, a share of which it was charged."""
    variants = {
        "baseline": SimulatedVariant(throughput_rps=10_000),
        "other": SimulatedVariant(throughput_rps=10_000),
    }
    run = simulated_run(variants, rounds=10, restart_sd=0.003, slot_sd=0.003)

    def charge(slot: SlotRecord) -> SlotRecord:
        if slot.variant == "baseline":
            return slot.model_copy(update={"readings": quiet_readings(slot)})
        more_s = slot.servers.cpu_sys_s + share * CHARGED_S
        use = slot.servers.model_copy(update={"cpu_sys_s": more_s})
        charged = slot.model_copy(update={"servers": use})
        quiet = quiet_readings(charged)
        return charged.model_copy(update={"readings": quiet.model_copy(update=plant(quiet))})

    return judged(run, charge)


@pytest.mark.parametrize("time_constant", [0.3, 0.7, 1.4])
@pytest.mark.parametrize("start", [-0.3, 0.3])
def test_a_rate_that_still_changes_inside_its_slots(start: float, time_constant: float) -> None:
    """Its logarithm fades to the truth as exp(-t / time constant), t in lengths of a slot."""
    variants = {"baseline": SimulatedVariant(), "other": SimulatedVariant()}
    run = simulated_run(variants, rounds=10, restart_sd=0.003, slot_sd=0.003)
    at = (np.arange(300) + 0.5) / 300
    thirds = np.exp(start * np.exp(-at / time_constant)).reshape(3, 100).mean(axis=1) / 3

    def settle(slot: SlotRecord) -> SlotRecord:
        if slot.variant == "baseline":
            return slot
        whole = slot.load.requests.completed
        first, second, third = (round(whole * share) for share in thirds)
        requests = slot.load.requests.model_copy(update={"completed": first + second + third})
        return with_thirds(slot, (first, second, third), requests=requests)

    rate = on(judged(run, settle), "throughput_rps")
    assert {bias.cause for bias in rate.biases} == {"slot-trend"}
    holds(rate, 1.0)
    assert rate.ratio is not None
    assert not rate.ratio.low <= 1.0 <= rate.ratio.high


def test_a_rate_that_still_rises() -> None:
    """Each round's slots come nearer to the true throughput, by a quarter of what was missing."""
    variants = {"baseline": SimulatedVariant(), "other": SimulatedVariant()}
    run = simulated_run(variants, rounds=10, restart_sd=0.003, slot_sd=0.003)
    places: dict[int, int] = {}

    def settle(slot: SlotRecord) -> SlotRecord:
        if slot.variant == "baseline" or slot.phase == "warmup":
            return slot
        place = places[slot.round] = places.get(slot.round, -1) + 1
        return slowed(slot, exp(-0.2 * exp(-0.5 * place)))

    rate = on(judged(run, settle), "throughput_rps")
    assert {bias.cause for bias in rate.biases} == {"trend"}
    holds(rate, 1.0)
    assert rate.verdict is not Verdict.SLOWER


def _client_limited(busy: float, **readings: object) -> Judgement:
    """Judge a run whose second variant had a higher throughput and kept the client saturated.

    Its servers' CPUs were busy for that share of the time.
    """
    variants = {
        "baseline": SimulatedVariant(),
        "other": SimulatedVariant(throughput_rps=62_000, busy=0.97),
    }
    run = simulated_run(variants, rounds=10, restart_sd=0.003, slot_sd=0.003)

    def change(slot: SlotRecord) -> SlotRecord:
        quiet = quiet_readings(slot)
        used = quiet.host.servers
        left = {"idle_s": used.busy_s * (1 / busy - 1)}
        host = quiet.host.model_copy(update={"servers": used.model_copy(update=left)})
        changed = quiet.model_copy(update={"host": host, **readings})
        return slot.model_copy(update={"readings": changed})

    return judged(run, change)


@pytest.mark.parametrize("saved", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("busy", [0.4, 0.95])
def test_beyond_the_client_there_is_what_cpu_time_the_servers_had_left(
    busy: float, saved: float
) -> None:
    """A request costs less once they are busy all the time: by so much of what was idle."""
    found = _client_limited(busy)
    rate = on(found, "throughput_rps")
    assert {bias.cause for bias in rate.biases} == {"client-limited"}
    assert rate.ratio is not None
    holds(rate, rate.ratio.estimate / busy / (1 - saved * (1 - busy)))
    assert rate.worst_case is not None
    assert rate.worst_case.high == pytest.approx(rate.ratio.high / busy**2, rel=0.01)
    ends = r"CI 1\.5\d–\d+\.\d+×\); the client limited other, which may"
    assert re.search(ends, found.headline)


def test_a_client_on_the_servers_cpus_leaves_no_saying_what_they_had_left() -> None:
    rate = on(_client_limited(0.9, shared_cpus=True), "throughput_rps")
    assert rate.worst_case is not None
    assert rate.worst_case.high > ENDLESS


def test_of_a_variant_that_filled_the_link_only_one_end_is_known() -> None:
    rate = on(_client_limited(0.9), "throughput_rps")
    said = with_verdict(rate.model_copy(update={"limited_by": {"other": "link"}}))
    assert said.endswith("the link limited other, which may be faster than measured")


def test_late_requests_of_an_open_loop() -> None:
    """All were sent 3 ms late and look 2.9 ms slower."""
    variants = {"baseline": SimulatedVariant(), "other": SimulatedVariant(latency_p50_us=4_400)}
    run = simulated_run(variants, rounds=10, restart_sd=0.003, slot_sd=0.003)
    late = load_with(loop="open", send_delay_us={"p50": 3_000.0, "p99": 3_000.0, "max": 3_000.0})

    def change(slot: SlotRecord) -> SlotRecord:
        return late(slot) if slot.variant == "other" else load_with(loop="open")(slot)

    median = on(judged(run, change), "latency_p50_us")
    assert {bias.cause for bias in median.biases} == {"send-delay"}
    holds(median, 1.0)
    assert median.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_interference_that_both_variants_had_alike_counts_against_neither(share: float) -> None:
    variants = {"baseline": SimulatedVariant(), "other": SimulatedVariant()}
    run = simulated_run(variants, rounds=10, restart_sd=0.003, slot_sd=0.003)

    def waiting(slot: SlotRecord) -> SlotRecord:
        readings = quiet_readings(slot).model_copy(update={"client_waiting": share})
        return slot.model_copy(update={"readings": readings})

    rate = on(judged(run, waiting), "throughput_rps")
    assert not rate.biases
    assert rate.verdict is Verdict.EQUIVALENT


def test_a_verdict_that_hangs_on_what_was_excluded_is_reported() -> None:
    found = with_interference(1.06, INTERFERENCE["steal"], effect=0.25, share_of_slots=0.4)
    assert on(found, "throughput_rps").sampling_verdict is Verdict.FASTER
    warnings = {(it.rule, *it.metrics): it for it in found.warnings}
    assert ("exclusion-matters", "throughput_rps") in warnings
