"""What others do on the CPUs and with the memory of a machine that is measured."""

from typing import Any

import pytest

from builders import server_use
from validity.broken import found_in, load_with, readings_with, run_with
from webdyno.core.records import SlotRecord
from webdyno.validity import excluded_slots
from webdyno.validity.others import TICKS_S, foreign_s


def run_on(servers_cpu_s: float, **readings: Any) -> Any:  # noqa: ANN401
    """Warnings of a run whose servers used this CPU time, on a host with these readings."""

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
        assert "up to 18%" in found["other-work"].what
        assert "server_cpu_us" not in found["other-work"].metrics


def test_interrupts_that_the_kernel_keeps_apart_are_not_other_programs() -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        use = server_use(0.7).model_copy(update={"interrupts_s": 0.2})
        return readings_with(host=BUSY)(slot.model_copy(update={"servers": use}))

    assert found_in(run_with(change)) == {}


def test_on_shared_cpus_the_clients_work_is_not_foreign() -> None:
    assert run_on(0.4, host=BUSY, shared_cpus=True) == {}


def test_time_given_to_other_machines_is_reported() -> None:
    stolen = {"servers": {**BUSY["servers"], "steal_s": 0.1}}
    found = run_on(0.9, host=stolen)
    assert "to other machines" in found["steal"].what


def test_others_are_seen_where_client_and_servers_share_cpus() -> None:
    """Whoever used the CPUs and was neither of them is another one."""
    run = run_with(readings_with(host=BUSY, shared_cpus=True))
    slot = run.data.of_variant("apache")[0]
    client = slot.load.client
    ours_s = slot.servers.cpu_s + client.cpu_user_s + client.cpu_sys_s
    assert slot.readings
    others_s = slot.readings.host.servers.busy_s - ours_s
    assert foreign_s(slot) == pytest.approx(max(others_s - TICKS_S, 0.0))


def test_waiting_for_memory_is_reported() -> None:
    pressed = {"pressure": {"cpu_s": 0.3, "memory_s": 0.1, "io_s": 0.0}}
    assert "20%" in run_on(0.9, host={**BUSY, **pressed})["memory-pressure"].what
    pressed["pressure"]["memory_s"] = 0.01
    assert run_on(0.9, host={**BUSY, **pressed}) == {}


def test_a_host_without_pressure_figures_is_fine() -> None:
    assert run_on(0.9, host={**BUSY, "pressure": None}) == {}


@pytest.mark.parametrize(("interfered", "excluded"), [(3, True), (6, False)])
def test_interference_is_excluded_where_that_narrows(interfered: int, *, excluded: bool) -> None:
    """Half of the rounds lose two fifths, of one variant more than of the other; or all do."""

    def change(slot: SlotRecord) -> SlotRecord:
        hit = slot.round % 6 < interfered
        slot = slot.model_copy(update={"servers": server_use(0.5 if hit else 0.9)})
        lost = 0.6 if hit and slot.variant == "apache" and slot.round % 2 else 1.0
        completed = round(slot.load.requests.completed * lost)
        return readings_with(host=BUSY)(load_with(requests={"completed": completed})(slot))

    run = run_with(change)
    assert found_in(run)["other-work"].severity == "note"
    rules = {each.rule for each in excluded_slots(run.data) if "throughput_rps" in each.metrics}
    assert ("other-work" in rules) == excluded
