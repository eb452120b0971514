"""Commands before and after each round."""

import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from builders import SimulatedVariant, point_data, simulated_run
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import State
from webdyno.core.hiding import keep_secret
from webdyno.host.users import caller
from webdyno.measure.folder import RunFolder
from webdyno.measure.point import RunningPoint
from webdyno.measure.variant import RunningRound, in_state
from webdyno.servers.output import READ_BYTES


def test_commands_run_in_order_around_the_round_and_are_logged(tmp_path: Path) -> None:
    said = tmp_path / "said"
    state = State(
        before_round=[f"echo one >> {said}", f"echo two >> {said}; echo done"],
        after_round=[f"echo after >> {said}"],
    )
    log = tmp_path / "new" / "state.log"
    with in_state(state, log, None):
        assert said.read_text().split() == ["one", "two"]
    assert said.read_text().split() == ["one", "two", "after"]
    assert "done" in log.read_text()
    assert f"after_round: echo after >> {said}" in log.read_text()


def test_what_fails_in_the_round_is_reported_and_the_commands_after_it_run(tmp_path: Path) -> None:
    said = tmp_path / "said"
    state = State(after_round=[f"touch {said}", "false"])
    with pytest.raises(ValueError, match="the round"), in_state(state, tmp_path / "log", None):
        raise ValueError("the round")
    assert said.exists()


@pytest.mark.parametrize(
    ("command", "reported"),
    [
        ("echo no database; exit 3", "ended with exit code 3"),
        ("echo no database; sleep 60", "did not end within 0.2 s"),
    ],
)
def test_a_failing_command_is_reported_with_what_it_said(
    tmp_path: Path, command: str, reported: str
) -> None:
    state = State(before_round=[command], within_s=0.2 if "sleep" in command else 20.0)
    with (
        pytest.raises(OperationError, match=reported) as error,
        in_state(state, tmp_path / "log", None),
    ):
        pytest.fail("the round has begun")
    assert "state.before_round" in str(error.value)
    assert "no database" in str(error.value) + (tmp_path / "log").read_text()


def test_the_log_s_end_begins_with_a_line_and_shows_no_end_of_a_secret(tmp_path: Path) -> None:
    keep_secret([token := "sk_live_4f9a7c2e81b35d60aa17e3c95b2d48f6073e1cbd92"])
    long = f"printf 'authorization: %s%0{READ_BYTES - 60}d\\nno database\\n' {token} 0; exit 1"
    (tmp_path / "fail").write_text(long)
    state = State(before_round=[f". {tmp_path}/fail"])
    with (
        pytest.raises(OperationError, match="no database") as error,
        in_state(state, tmp_path / "log", None),
    ):
        pytest.fail("the round has begun")
    assert token[-20:] not in str(error.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to go on with another one's run")
def test_in_another_one_s_folder_root_runs_them_as_that_one(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("SECRET", "ours")
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=1)
    with RunFolder.create(open_folder / "run", run.head) as folder:
        os.chown(folder.path, 12345, 12345)
        experiment = run.head.experiment.model_copy(
            update={"state": State(before_round=["id -u; id -G; echo [$SECRET]"])}
        )
        point = RunningPoint(
            data=point_data([], experiment),
            variants=[],
            testbed=Mock(),
            calibrations={},
            folder=folder,
            progress=Mock(),
            commands_user=caller(folder.path),
        )
        with RunningRound(point, 1):
            said = folder.round_log(point.number, 1, "state.log").read_text()
    assert said.splitlines()[1:] == ["12345", "12345", "[]"]


def test_a_log_that_leads_elsewhere_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "log").symlink_to(tmp_path / "kept")
    with (
        pytest.raises(OperationError, match="log: can't be written"),
        in_state(State(before_round=["echo said"]), tmp_path / "log", None),
    ):
        pytest.fail("the round has begun")
    assert (tmp_path / "kept").read_text() == "kept"


def test_nothing_that_a_command_left_in_the_background_stays(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with in_state(State(before_round=[f"sleep 60 & echo $! > {pid}"]), tmp_path / "log", None):
        number = int(pid.read_text())
    stat = Path(f"/proc/{number}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)  # it was killed; the test ends with pytest's own time limit else


def test_a_log_that_its_command_swaps_for_a_link_is_not_reported(tmp_path: Path) -> None:
    """What fails is reported with the end of its log: root may read what the command may not."""
    (tmp_path / "secret").write_text("a secret")
    log = tmp_path / "log"
    swap = f"ln -sf {tmp_path}/secret {log}; false"
    with (
        pytest.raises(UserError, match="log is a symbolic link"),
        in_state(State(before_round=[swap]), log, None),
    ):
        pytest.fail("the round has begun")
