"""Rules about what the servers were left with."""

import pytest

from judge.validity.broken import found_in, load_with, readings_with, run_with
from webdyno.model.readings import MemoryLimitUse


@pytest.mark.parametrize(
    ("peak_mib", "kills", "reclaims", "fires"),
    [(60, 0, 0, False), (60, 1, 0, True), (60, 0, 9, True), (64, 0, 0, True)],
)
def test_a_memory_limit_that_was_reached_is_told(
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
def test_arms_that_should_be_idle_and_work_are_told(cpu_s: float, fires: bool) -> None:
    found = found_in(run_with(readings_with(other_arms_cpu_s={"nginx": cpu_s})))
    assert ("left-over-work" in found) == fires
    if fires:
        assert found["left-over-work"].what.startswith("arm apache: nginx went on working")


@pytest.mark.parametrize(("drained", "fires"), [(2_000, False), (1_950, False), (500, True)])
def test_requests_that_the_drain_left_are_told(drained: int, fires: bool) -> None:
    change = load_with(requests={"unanswered": 2_000, "drained": drained})
    assert ("undrained" in found_in(run_with(change))) == fires
