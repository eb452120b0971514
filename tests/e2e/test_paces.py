"""Paces of requests and connections on real servers, as flags of `webdyno compare` give them."""

from pathlib import Path

import pytest

from e2e.commands import QUICK, run_rounds, slots
from webdyno.measure.folder import RunFolder

PAIR = ("compare", "nginx", "apache-event")


def test_each_connection_has_bursts_of_its_own(tmp_path: Path) -> None:
    pace = ("--rate-per-conn=40", "-c", "10", "--burst=4", "--kernel-times")
    run_rounds(1, *PAIR, *pace, *QUICK, folder=tmp_path)
    folder = RunFolder.open(tmp_path / "run")
    load = folder.head.experiment.load
    assert (load.rate_per_connection, load.burst, load.kernel_times) == (40, 4, True)
    measured = [slot.load for slot in slots(folder) if slot.phase == "measure"]
    assert any(result.requests.completed for result in measured)
    for result in measured:
        assert (result.offered_rps, result.due_together) == (400, 4)
        assert (result.connections.opened or 0) <= 10


@pytest.mark.long
def test_windows_begin_when_all_connections_have_begun(tmp_path: Path) -> None:
    run_rounds(1, *PAIR, "--conn-ramp=500ms", "-c", "20", *QUICK, folder=tmp_path)
    measured = [
        slot.load for slot in slots(RunFolder.open(tmp_path / "run")) if slot.phase == "measure"
    ]
    assert measured
    assert all(result.ramp_up_s >= 0.5 for result in measured)
