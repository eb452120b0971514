"""Ceilings looked up, noise extrapolated, calibrations kept."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.testbed import Calibration, Delay, Limit, MeasuredCeiling, TestbedSettings
from webdyno.host.this_machine import Testbed
from webdyno.measure.calibration import (
    calibration_file,
    describe_noise,
    load_calibration,
    save_calibration,
)
from webdyno.statistics.interval import t_quantile

DELAY = Delay(p50_us=20, p99_us=90, max_us=400)
FOUND: list[tuple[int, float, Limit]] = [
    (100, 150_000.0, "client"),
    (10_000, 100_000.0, "client"),
    (100_000, 1_000.0, "link"),
]


def calibration(testbed: TestbedSettings = TestbedSettings()) -> Calibration:  # noqa: B008 (it is frozen)
    return Calibration(
        made_at=datetime.now(UTC),
        webdyno_version="0",
        load_generator="loadgen 0",
        machine=Testbed().describe(),
        testbed=testbed,
        ceilings=[
            MeasuredCeiling(
                body_bytes=body_bytes,
                connections=64,
                keepalive="always",
                throughput_rps=throughput_rps,
                limited_by=limit,
                client_busy=0.9,
            )
            for body_bytes, throughput_rps, limit in FOUND
        ],
        timer_delay=DELAY,
        send_delay=DELAY,
        noise=[describe_noise("throughput_rps", 0.02, 8, 6.0)],
    )


@pytest.mark.parametrize(
    ("body_bytes", "throughput_rps", "limit"),
    [
        (13, 150_000, "client"),
        (100, 150_000, "client"),
        (5_050, 120_000, "client"),  # half the way in time per response
        (10_000, 100_000, "client"),
        (55_000, 1 / (0.5 / 100_000 + 0.5 / 1_000), "unknown"),
        (100_000, 1_000, "link"),
        (200_000, 500, "link"),
    ],
)
def test_ceilings_between_and_beyond_what_was_measured(
    body_bytes: int, throughput_rps: float, limit: Limit
) -> None:
    found = calibration().ceiling(body_bytes, 64, "always")
    assert found is not None
    assert found.throughput_rps == pytest.approx(throughput_rps)
    assert found.limited_by == limit


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_longer_answers_never_have_a_higher_ceiling(one: float, other: float) -> None:
    kept = calibration()
    rates = [kept.ceiling(length, 64, "always") for length in sorted((one, other))]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[0].throughput_rps >= rates[1].throughput_rps * (1 - 1e-9)


@pytest.mark.parametrize(
    ("connections", "keepalive", "known"),
    [(64, "always", True), (32, "always", True), (8, "always", False), (64, "never", False)],
)
def test_nothing_is_said_of_other_loads(connections: int, keepalive: str, known: bool) -> None:
    assert (calibration().ceiling(100, connections, keepalive) is not None) == known


def test_noise_is_extrapolated_by_the_formula() -> None:
    noise = describe_noise("throughput_rps", round_sd=0.02, rounds=8, round_s=6.0)
    assert noise.visible["1 min"] == pytest.approx(t_quantile(10, 0.95) * 0.02 / 10**0.5, rel=0.01)
    assert noise.visible["1 min"] > noise.visible["5 min"] > noise.visible["20 min"]


def test_calibrations_are_kept_by_machine_and_testbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    here, link = TestbedSettings(), TestbedSettings(kind="netns", link=1e8)
    machine = Testbed().describe()
    assert load_calibration(machine, here) is None
    kept = calibration()
    path = save_calibration(kept)
    assert path.parent == tmp_path / "webdyno"
    assert load_calibration(machine, here) == kept
    assert load_calibration(machine, link) is None
    larger = machine.model_copy(update={"memory_bytes": machine.memory_bytes * 2})
    assert load_calibration(larger, here) is None
    path.write_text("{}")
    assert load_calibration(machine, here) is None


def test_without_xdg_state_home_the_usual_folder_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    path = calibration_file(Testbed().describe(), TestbedSettings())
    assert path.parent == Path("/home/ada/.local/state/webdyno")
