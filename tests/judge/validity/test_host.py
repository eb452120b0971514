"""Rules about the host."""

from typing import Any

import pytest

from builders import server_use
from judge.validity.broken import found_in, readings_with, run_with
from webdyno.model.records import SlotRecord


def run_on(servers_cpu_s: float, **readings: Any) -> Any:  # noqa: ANN401
    """Findings of a run whose servers used this CPU time, on a host with these readings."""

    def change(slot: SlotRecord) -> SlotRecord:
        used = slot.model_copy(update={"servers": server_use(servers_cpu_s)})
        return readings_with(**readings)(used)

    return found_in(run_with(change))


BUSY = {"servers": {"user_s": 0.3, "system_s": 0.4, "interrupts_s": 0.2, "idle_s": 0.1}}


@pytest.mark.parametrize(("servers_cpu_s", "fires"), [(0.9, False), (0.8, False), (0.7, True)])
def test_cpu_time_that_servers_did_not_use_is_somebody_elses(
    servers_cpu_s: float, fires: bool
) -> None:
    found = run_on(servers_cpu_s, host=BUSY)
    assert ("other-work" in found) == fires
    if fires:
        assert "up to 18 %" in found["other-work"].what
        assert "server_cpu_us" not in found["other-work"].metrics


def test_interrupts_that_the_kernel_keeps_apart_are_not_other_programs() -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        use = server_use(0.7).model_copy(update={"interrupts_s": 0.2})
        return readings_with(host=BUSY)(slot.model_copy(update={"servers": use}))

    assert found_in(run_with(change)) == {}


def test_on_shared_cpus_the_clients_work_is_not_foreign() -> None:
    assert run_on(0.4, host=BUSY, shared_cpus=True) == {}


def test_time_given_to_other_machines_is_told() -> None:
    stolen = {"servers": {**BUSY["servers"], "steal_s": 0.1}}
    found = run_on(0.9, host=stolen)
    assert "to other machines" in found["steal"].what


def test_waiting_for_memory_is_told() -> None:
    pressed = {"pressure": {"cpu_s": 0.3, "memory_s": 0.1, "io_s": 0.0}}
    assert "20 %" in run_on(0.9, host={**BUSY, **pressed})["memory-pressure"].what
    pressed["pressure"]["memory_s"] = 0.01
    assert run_on(0.9, host={**BUSY, **pressed}) == {}


def test_a_host_without_pressure_figures_is_fine() -> None:
    assert run_on(0.9, host={**BUSY, "pressure": None}) == {}


@pytest.mark.parametrize(("disturbed", "kept"), [(3, False), (6, True)])
def test_passing_disturbances_are_left_out(disturbed: int, kept: bool) -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        used = 0.5 if slot.block % 6 < disturbed else 0.9
        slot = slot.model_copy(update={"servers": server_use(used)})
        return readings_with(host=BUSY)(slot)

    finding = found_in(run_with(change))["other-work"]
    assert finding.severity == "note"
    assert ("kept: how far" in finding.what) == kept
    assert ("left out" in finding.what) != kept
