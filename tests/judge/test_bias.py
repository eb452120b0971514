"""Disturbances planted in a run's records: the truth has to lie inside the judge's bounds."""

from collections.abc import Callable
from math import exp
from random import Random
from typing import Any

import pytest

from builders import SimulatedArm, SimulatedRun, simulated_run
from judge.validity.broken import load_with, quiet_readings
from webdyno.judge import judge
from webdyno.model.judgement import Comparison, Judgement, Verdict
from webdyno.model.readings import Readings, StoppedUse
from webdyno.model.records import Record, SlotRecord

SHARE = 0.3
"""Of the slot's time, that a disturbance takes."""
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
    return {**busy, "other_arms_cpu_s": {"other": SHARE * 1.0}}


TOOK_FROM_CPUS = SHARE * 1.0
"""CPU seconds: servers use up to 0.8 s of CPU time in a slot of 0.5 s."""

DISTURBANCES: dict[str, Plant] = {
    "steal": _servers("steal_s", TOOK_FROM_CPUS),
    "other-work": _servers("user_s", TOOK_FROM_CPUS + 0.02),
    "left-over-work": _left_over,
    "memory-pressure": _pressed,
    "client-held-back": lambda _: {"client_waiting": SHARE},
    "client-stood-still": lambda _: {"stopped": StoppedUse(client_s=SHARE * TOOK_S)},
    "servers-stopped": lambda _: {"stopped": StoppedUse(servers_s=SHARE * TOOK_S)},
}


def slowed(slot: SlotRecord, factor: float) -> SlotRecord:
    """Take answers away, and give those that are left longer times."""
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


def disturbed(
    ratio: float, plant: Plant, *, effect: float, share_of_slots: float = 1.0, noise: float = 0.01
) -> Judgement:
    """Judge a run whose second arm lost `effect` of its rate, as the evidence allows for."""
    arms = {"base": SimulatedArm(rate_rps=20_000), "other": SimulatedArm(rate_rps=20_000 * ratio)}
    run = simulated_run(arms, blocks=10, restart_sd=noise, slot_sd=noise, seed=3)
    random = Random(5)

    def change(slot: SlotRecord) -> SlotRecord:
        if slot.arm == "base" or random.random() >= share_of_slots:
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
    return judge(run.head, records)


def on(found: Judgement, metric: str) -> Comparison:
    """The comparison on a metric."""
    (comparison,) = (it for it in found.comparisons if it.metric == metric)
    return comparison


@pytest.mark.parametrize("cause", DISTURBANCES)
@pytest.mark.parametrize("effect", [0.0, 0.1, 0.25])
def test_the_true_ratio_lies_within_the_bounds(cause: str, effect: float) -> None:
    """Whether the disturbance cost nothing or nearly all that it can have cost."""
    found = on(disturbed(1.5, DISTURBANCES[cause], effect=effect), "rate_rps")
    assert found.bounded is not None
    assert found.bounded.low <= 1.5 <= found.bounded.high
    assert {bias.cause for bias in found.biases} == {cause}
    if effect:
        assert found.ratio is not None
        assert not found.ratio.low <= 1.5 <= found.ratio.high


@pytest.mark.parametrize("cause", DISTURBANCES)
def test_a_large_difference_survives_a_disturbance(cause: str) -> None:
    found = disturbed(4.0, DISTURBANCES[cause], effect=0.1)
    assert found.verdict is Verdict.FASTER
    (rate,) = (it for it in found.comparisons if it.metric == "rate_rps")
    assert rate.tipping is not None
    assert rate.tipping.startswith("would need ")
    assert rate.tipping in rate.why


@pytest.mark.parametrize("cause", DISTURBANCES)
def test_equals_are_not_called_slower_for_a_disturbance(cause: str) -> None:
    found = disturbed(1.0, DISTURBANCES[cause], effect=0.25)
    rate = on(found, "rate_rps")
    assert rate.as_measured is Verdict.SLOWER
    assert rate.verdict is Verdict.UNDECIDED
    assert "slower as measured, but what disturbed it may have made it so" in found.headline


def test_stolen_time_that_was_charged_to_the_servers() -> None:
    """A kernel that counts stolen time as theirs: the cost per request looks higher."""
    arms = {"base": SimulatedArm(rate_rps=10_000), "other": SimulatedArm(rate_rps=10_000)}
    run = simulated_run(arms, blocks=10, restart_sd=0.003, slot_sd=0.003)

    def charge(slot: SlotRecord) -> SlotRecord:
        quiet = quiet_readings(slot)
        if slot.arm == "base":
            return slot.model_copy(update={"readings": quiet})
        stolen_s = 0.25 * slot.servers.cpu_s
        use = slot.servers.model_copy(update={"cpu_sys_s": slot.servers.cpu_sys_s + stolen_s})
        readings = quiet.model_copy(update=_servers("steal_s", stolen_s)(quiet))
        return slot.model_copy(update={"servers": use, "readings": readings})

    cost = on(judged(run, charge), "server_cpu_us")
    assert cost.as_measured is Verdict.SLOWER
    assert cost.bounded is not None
    assert cost.bounded.low <= 1.0 <= cost.bounded.high


def test_a_rate_that_still_rises() -> None:
    """Each block's slots come nearer to the true rate, by a quarter of what was missing."""
    arms = {"base": SimulatedArm(), "other": SimulatedArm()}
    run = simulated_run(arms, blocks=10, restart_sd=0.003, slot_sd=0.003)
    places: dict[int, int] = {}

    def settle(slot: SlotRecord) -> SlotRecord:
        if slot.arm == "base" or slot.phase == "warmup":
            return slot
        place = places[slot.block] = places.get(slot.block, -1) + 1
        return slowed(slot, exp(-0.2 * exp(-0.5 * place)))

    rate = on(judged(run, settle), "rate_rps")
    assert {bias.cause for bias in rate.biases} == {"trend"}
    assert rate.bounded is not None
    assert rate.bounded.low <= 1.0 <= rate.bounded.high
    assert rate.verdict is not Verdict.SLOWER


def test_late_requests_of_an_open_loop() -> None:
    """All were sent 3 ms late and look 2.9 ms slower."""
    arms = {"base": SimulatedArm(), "other": SimulatedArm(response_p50_us=4_400)}
    run = simulated_run(arms, blocks=10, restart_sd=0.003, slot_sd=0.003)
    late = load_with(loop="open", send_lag_us={"p50": 3_000.0, "p99": 3_000.0, "max": 3_000.0})

    def change(slot: SlotRecord) -> SlotRecord:
        return late(slot) if slot.arm == "other" else load_with(loop="open")(slot)

    median = on(judged(run, change), "response_p50_us")
    assert {bias.cause for bias in median.biases} == {"send-lag"}
    assert median.bounded is not None
    assert median.bounded.low <= 1.0 <= median.bounded.high
    assert median.verdict is Verdict.UNDECIDED


def test_a_small_disturbance_that_both_arms_had_alike_counts_for_nothing() -> None:
    arms = {"base": SimulatedArm(), "other": SimulatedArm()}
    run = simulated_run(arms, blocks=10, restart_sd=0.003, slot_sd=0.003)
    found = judged(run, lambda slot: slot.model_copy(update={"readings": quiet_readings(slot)}))
    assert on(found, "rate_rps").biases == []
    assert found.verdict is Verdict.EQUIVALENT


def test_a_verdict_that_hangs_on_what_was_left_out_is_told() -> None:
    found = disturbed(1.06, DISTURBANCES["steal"], effect=0.25, share_of_slots=0.4)
    assert on(found, "rate_rps").as_measured is Verdict.FASTER
    findings = {(it.rule, *it.metrics): it for it in found.findings}
    assert ("left-out-matters", "rate_rps") in findings
