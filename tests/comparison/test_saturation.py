"""What was saturated near a capacity, by planted readings."""

from collections.abc import Callable

import pytest

from builders import SimulatedRun
from comparison.searches import Variant, searched
from validity.broken import quiet_readings
from webdyno.comparison import judge
from webdyno.comparison.saturation import what_was_full
from webdyno.core.findings import CountedResource, Saturation
from webdyno.core.readings import CpuUse, MemoryLimitUse, ServerStatus
from webdyno.core.records import SlotRecord

RATE, OTHER = 2_000, Variant(6_000)
Change = Callable[[SlotRecord], SlotRecord]


def probed(*, busy: float = 0.5, busiest: float | None = None, **readings: object) -> Change:
    """Servers' CPUs that are so busy, all of them and the busiest one, and other readings."""

    def change(slot: SlotRecord) -> SlotRecord:
        quiet = quiet_readings(slot)
        cpus = CpuUse(user_s=busy, system_s=0, interrupts_s=0, idle_s=1 - busy, steal_s=0)
        update = {"servers": cpus, "busiest_server_cpu": busiest or busy}
        host = quiet.host.model_copy(update=update)
        reported = quiet.model_copy(update={"host": host, **readings})
        return slot.model_copy(update={"readings": reported})

    return change


def of_first(run: SimulatedRun) -> Saturation:
    """What is found of the first variant."""
    return judge(run.data).saturation[0]


def limits(run: SimulatedRun) -> list[CountedResource]:
    """What was saturated with the first variant."""
    return [use.resource for use in of_first(run).limits]


def said(run: SimulatedRun) -> str:
    """The sentence about the first variant."""
    return next(what_was_full([of_first(run)]))


def test_all_cpus_are_the_limit_and_the_busiest_is_not_reported_next_to_them() -> None:
    run = searched(node=Variant(RATE, probed=probed(busy=0.97)), nginx=OTHER)
    assert limits(run) == ["servers-cpus"]
    assert said(run) == "node: the servers' CPUs (97% busy)."


def test_one_busy_cpu_among_idle_ones_is_reported() -> None:
    run = searched(node=Variant(RATE, probed=probed(busy=0.51, busiest=0.99)), nginx=OTHER)
    assert limits(run) == ["busiest-cpu"]
    assert said(run) == "node: the busiest of the servers' CPUs (99% busy)."


def test_workers_are_all_busy_where_as_many_requests_are_under_way() -> None:
    status = {"php": ServerStatus(busy=0, workers=4, most_busy=4, most_waiting=9)}
    slow = Variant(RATE, latency_us=2_500, probed=probed(busy=0.6, status=status))
    run = searched(apache=slow, nginx=OTHER)
    assert limits(run) == ["workers"]
    assert said(run) == "apache: the 4 workers of php (100% busy)."


def test_workers_that_an_overload_had_filled_are_no_limit_below_the_capacity() -> None:
    status = {"php": ServerStatus(busy=0, workers=64, most_busy=64, most_waiting=9)}
    run = searched(apache=Variant(RATE, probed=probed(status=status)), nginx=OTHER)
    assert limits(run) == []


def test_requests_under_way_elsewhere_are_not_taken_for_busy_workers() -> None:
    status = {"php": ServerStatus(busy=0, workers=4, most_busy=1)}
    slow = Variant(RATE, latency_us=2_500, probed=probed(status=status))
    assert limits(searched(apache=slow, nginx=OTHER)) == []


def test_workers_that_hold_kept_connections_are_busy() -> None:
    status = {"apache": ServerStatus(busy=16, workers=16)}
    run = searched(apache=Variant(RATE, probed=probed(status=status)), nginx=OTHER)
    assert limits(run) == ["workers"]


def test_all_connections_in_use_are_reported() -> None:
    run = searched(slow=Variant(RATE, latency_us=32_000, probed=probed()), nginx=OTHER)
    assert limits(run) == ["connections"]
    assert said(run).startswith("slow: the load's 64 connections (")


@pytest.mark.parametrize(("reclaims", "found"), [(0, []), (3, ["memory"])])
def test_a_memory_limit_counts_once_it_was_reached(reclaims: int, found: list[str]) -> None:
    memory = MemoryLimitUse(
        limit_bytes=512_000_000, peak_bytes=511_000_000, oom_kills=0, reclaims=reclaims
    )
    run = searched(apache=Variant(RATE, probed=probed(memory=memory)), nginx=OTHER)
    assert limits(run) == found
    assert "the memory limit of 512 MB (100% used)" in said(run)


def test_a_client_that_ended_the_search_is_the_limit_without_any_probes() -> None:
    run = searched(nginx=Variant(50_000, client_rps=RATE), apache=OTHER)
    assert limits(run) == ["client"]
    assert said(run) == (
        "nginx: the load generator (55% busy, too late to offer more), so its capacity is a lower "
        "bound."
    )


def test_where_nothing_is_used_up_it_says_what_came_nearest() -> None:
    run = searched(apache=Variant(RATE, probed=probed(busy=0.7)), nginx=OTHER)
    assert limits(run) == []
    assert said(run).startswith(
        "apache: no resource (closest: the servers' CPUs (70% busy)). Random arrivals queue, "
    )


def test_a_variant_without_a_capacity_has_none() -> None:
    run = searched(broken=Variant(RATE, holds=False, probed=probed()), nginx=OTHER)
    assert [it.variant for it in judge(run.data).saturation] == ["nginx"]


def test_it_is_reported_for_an_objective_of_failures_alone() -> None:
    run = searched(slo=["failures<0.1%"], node=Variant(RATE, probed=probed(busy=0.95)), nginx=OTHER)
    assert limits(run) == ["servers-cpus"]
