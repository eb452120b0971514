"""Rules about the client."""

import pytest

from builders import SimulatedArm, simulated_run
from judge.validity.broken import found_in, load_with, readings_with, run_with
from webdyno.model.judgement import Finding
from webdyno.model.load_result import Window
from webdyno.model.readings import StoppedUse


@pytest.mark.parametrize(("busy", "fires"), [(0.5, False), (0.85, False), (0.86, True)])
def test_a_busy_client_is_the_bottleneck(busy: float, fires: bool) -> None:
    arms = {"nginx": SimulatedArm(busy=busy), "apache": SimulatedArm()}
    found = found_in(simulated_run(arms, blocks=6))
    assert ("client-bound" in found) == fires


def test_client_bound_spoils_what_the_client_times_only() -> None:
    arms = {"nginx": SimulatedArm(busy=0.97), "apache": SimulatedArm()}
    finding = found_in(simulated_run(arms, blocks=6))["client-bound"]
    assert "97 %" in finding.what
    assert "server_cpu_us" not in finding.metrics
    assert "rate_rps" in finding.metrics
    assert "server_cpu_us" in finding.remedy


@pytest.mark.parametrize(
    ("loop", "lag_us", "response_us", "fires"),
    [
        ("open", 2_000.0, 10_000.0, True),
        ("open", 2_000.0, 50_000.0, False),
        ("open", 200.0, 300.0, False),
        ("closed", 2_000.0, 10_000.0, False),
    ],
)
def test_late_requests_spoil_an_open_loop(
    loop: str, lag_us: float, response_us: float, fires: bool
) -> None:
    change = load_with(
        loop=loop, send_lag_us={"p99": lag_us}, response_time_us={"p99": response_us}
    )
    found = found_in(run_with(change))
    assert ("send-lag" in found) == fires


@pytest.mark.parametrize(
    ("waiting", "shared", "fires"),
    [
        (0.1, False, False),
        (0.2, False, True),
        (0.6, False, True),
        (0.6, True, False),
        (None, False, False),
    ],
)
def test_a_client_that_did_not_get_its_cpu_is_told(
    waiting: float | None, shared: bool, fires: bool
) -> None:
    change = readings_with(client_waiting=waiting, shared_cpus=shared)
    found = found_in(run_with(change))
    assert ("client-held-back" in found) == fires
    if fires:
        assert f"{waiting:.0%}"[:2] in found["client-held-back"].what


def with_windows(*completed: int, median_us: float = 1_500.0) -> dict[str, Finding]:
    """Findings of slots of four seconds in windows of one."""
    windows = [
        Window(at_s=float(at), length_s=1.0, completed=count) for at, count in enumerate(completed)
    ]
    change = load_with(windows=windows, response_time_us={"p50": median_us})
    return found_in(run_with(change))


def test_a_stretch_without_answers_in_a_closed_loop_is_told() -> None:
    finding = with_windows(9_112, 0, 0, 0)["stood-still"]
    assert "for 3 s of a slot next to nothing was answered" in finding.what
    assert "server_cpu_us" not in finding.metrics


def test_answers_in_slow_bursts_are_no_standstill() -> None:
    assert "stood-still" not in with_windows(64, 0, 64, 0, median_us=1_900_000)


def test_a_client_that_was_seen_stopped_is_told() -> None:
    found = found_in(run_with(readings_with(stopped=StoppedUse(client_s=0.3))))
    assert "stood still for up to 0.3 s of a slot" in found["client-stood-still"].what


@pytest.mark.parametrize("loop", ["open", "closed"])
@pytest.mark.parametrize(("still_s", "fires"), [(0.009, False), (0.011, True)])
def test_a_client_that_says_it_stood_still_is_believed(
    loop: str, still_s: float, fires: bool
) -> None:
    found = found_in(run_with(load_with(loop=loop, client={"stood_still_s": still_s})))
    assert ("client-stood-still" in found) == fires
