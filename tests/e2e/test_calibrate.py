"""`webdyno doctor --calibrate` as users type it, and what later runs make of it."""

from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, run_rounds, webdyno_here
from webdyno.core.testbed import Calibration
from webdyno.measure import calibration
from webdyno.measure.folder import RunFolder


@pytest.mark.measures
def test_a_calibration_is_measured_kept_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(calibration, "CEILING_SLOT_S", 0.15)
    monkeypatch.setattr(calibration, "NOISE_SLOT_S", 0.1)
    done = webdyno_here(
        "doctor", "--calibrate", "--body=13B", "--time=1s", "--format=json", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = Calibration.model_validate_json(done.stdout)
    assert [ceiling.keepalive for ceiling in found.ceilings] == ["always", "never"]
    assert found.ceilings[0].throughput_rps > found.ceilings[1].throughput_rps > 0
    assert {it.metric for it in found.noise} == {"throughput_rps", "server_cpu_us"}
    assert "the same variant against itself" in done.stderr
    assert len(list((tmp_path / "state/webdyno").iterdir())) == 1
    assert left_behind(tmp_path) == []

    reported = run_rounds(1, "run", *QUICK, folder=tmp_path)
    folder = RunFolder.open(tmp_path / "run")
    assert folder.head.calibration == found
    slots = [record for record in folder.records() if record.kind == "slot"]
    assert all(slot.readings and slot.readings.ceiling for slot in slots), reported


@pytest.mark.parametrize(
    ("flag", "reported"),
    [
        ("--body=big", "--body big"),
        ("--connections=0", "-c 0: it should be 1 or more"),
        ("--link=1", "1 kbit/s"),
    ],
)
def test_wrong_flags_are_reported(flag: str, reported: str, tmp_path: Path) -> None:
    done = webdyno_here("doctor", "--calibrate", flag, folder=tmp_path)
    assert done.returncode == 2
    assert reported in done.stderr
