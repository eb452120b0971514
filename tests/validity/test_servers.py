"""Servers that lack something, or do other work."""

import pytest

from builders import SimulatedRun
from validity.broken import found_in, load_with, readings_with, run_with
from webdyno.core.load import SlowReaders
from webdyno.core.readings import MemoryLimitUse, ServerStatus, StoppedUse
from webdyno.core.records import SlotRecord


@pytest.mark.parametrize(
    ("peak_mib", "kills", "reclaims", "fires"),
    [(60, 0, 0, False), (60, 1, 0, True), (60, 0, 9, True), (64, 0, 0, True)],
)
def test_a_memory_limit_that_was_reached_is_reported(
    peak_mib: int, kills: int, reclaims: int, fires: bool
) -> None:
    memory = MemoryLimitUse(
        limit_bytes=64 * 2**20, peak_bytes=peak_mib * 2**20, oom_kills=kills, reclaims=reclaims
    )
    found = found_in(run_with(readings_with(memory=memory)))
    assert ("memory-limit" in found) == fires
    if fires:
        assert "64 MiB" in found["memory-limit"].what
        assert ("killed 24 of its processes" in found["memory-limit"].what) == (kills > 0)


@pytest.mark.parametrize(("cpu_s", "fires"), [(0.001, False), (0.05, True)])
def test_variants_that_should_be_idle_and_work_are_reported(cpu_s: float, fires: bool) -> None:
    found = found_in(run_with(readings_with(other_variants_cpu_s={"nginx": cpu_s})))
    assert ("left-over-work" in found) == fires
    if fires:
        assert found["left-over-work"].what.startswith("variant apache: nginx went on working")


@pytest.mark.parametrize(("drained", "fires"), [(2_000, False), (1_950, False), (500, True)])
def test_requests_that_the_drain_left_are_reported(drained: int, fires: bool) -> None:
    change = load_with(requests={"unanswered": 2_000, "drained": drained})
    assert ("undrained" in found_in(run_with(change))) == fires


def reported(status: ServerStatus, *, role: str = "front") -> SimulatedRun:
    """A run in which a service of a variant reported this in each slot."""
    return run_with(readings_with(status={role: status}, front="front"))


def counted(more: int, *, unanswered: int = 0) -> SimulatedRun:
    """A run in which the server counted more requests than the load generator sent."""

    def change(slot: SlotRecord) -> SlotRecord:
        in_flight = load_with(requests={"unanswered": unanswered})(slot)
        status = ServerStatus(requests=(slot.load.requests.sent or 0) + more)
        return readings_with(status={"front": status}, front="front")(in_flight)

    return run_with(change)


@pytest.mark.parametrize(
    ("more", "unanswered", "fires"),
    [(0, 0, False), (1, 0, True), (-1, 0, True), (64, 64, False), (-64, 64, False), (65, 64, True)],
)
def test_counts_that_differ_by_more_than_what_was_in_flight(
    more: int, unanswered: int, fires: bool
) -> None:
    found = found_in(counted(more, unanswered=unanswered))
    assert ("request-count" in found) == fires
    if fires:
        note = found["request-count"]
        assert (note.severity, note.variant) == ("note", "apache")
        assert "in 24 of 24 slots" in note.what


@pytest.mark.parametrize(
    "clients",
    [{"slow_readers": SlowReaders(connections=4, bytes_per_s=1000)}, {"idle_connections": 40}],
)
def test_requests_of_clients_next_to_the_load_are_not_held_against_it(
    clients: dict[str, object],
) -> None:
    run = counted(40)
    experiment = run.head.experiment
    load = experiment.load.model_copy(update=clients)
    head = run.head.model_copy(update={"experiment": experiment.model_copy(update={"load": load})})
    assert "request-count" not in found_in(SimulatedRun(head, run.records))


def test_only_the_front_is_asked_by_the_load() -> None:
    assert "request-count" not in found_in(reported(ServerStatus(requests=1), role="behind"))


@pytest.mark.parametrize(
    ("status", "fires"),
    [
        (ServerStatus(workers=16, most_busy=16), True),
        (ServerStatus(workers=16, most_busy=15, most_waiting=3), True),
        (ServerStatus(workers=16, most_busy=15, most_waiting=0), False),
        (ServerStatus(workers=64, most_busy=64), False),
        (ServerStatus(workers=16, busy=16), False),
    ],
)
def test_requests_that_wait_for_a_worker(status: ServerStatus, fires: bool) -> None:
    found = found_in(reported(status, role="phpfpm"))
    assert ("workers-all-busy" in found) == fires
    if fires:
        note = found["workers-all-busy"]
        assert note.severity == "note"
        assert "of 16 workers of phpfpm" in note.what
        assert ("3 connections stood in its queue" in note.what) == bool(status.most_waiting)


def test_servers_that_were_seen_stopped_are_reported() -> None:
    found = found_in(run_with(readings_with(stopped=StoppedUse(servers_s=0.2))))
    warning = found["servers-stopped"]
    assert "processes of its servers were stopped for 4.8 s" in warning.what
    assert "server_cpu_us" in warning.metrics
    assert "memory_mib" not in warning.metrics
