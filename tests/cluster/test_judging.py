"""Machines judged over processes: the same as in one, and no process left behind."""

import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from variants import further
from waiting import wait_until
from webdyno.cluster import dispatch
from webdyno.cluster.dispatch import judged_machines
from webdyno.core.errors import UserError

OVER_PROCESSES = """
from webdyno.cluster import dispatch
dispatch.WORTH_PROCESSES_BYTES = 0
from webdyno.interfaces.cli import main
if __name__ == "__main__":
    main()
"""


def stored(folder: Path, machines: int, rounds: int = 6) -> dict[str, Path]:
    """Store the runs of some machines."""
    variants = {"apache": SimulatedVariant(), "nginx": SimulatedVariant(throughput_rps=80_000)}
    return {
        f"m{n}": simulated_run(variants, seed=n, rounds=rounds).stored(folder / f"m{n}")
        for n in range(machines)
    }


@pytest.fixture
def over_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take processes for few records, too, and two of them at least."""
    monkeypatch.setattr(dispatch, "WORTH_PROCESSES_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_processes_judge_as_one_does(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    runs = stored(tmp_path, machines=5)
    alone = judged_machines(runs)
    request.getfixturevalue("over_processes")
    together = judged_machines(runs)
    assert list(together) == list(runs)
    assert together == alone


def test_few_records_take_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dispatch, "ProcessPoolExecutor")
    assert len(judged_machines(stored(tmp_path, machines=3))) == 3


@pytest.mark.usefixtures("over_processes")
def test_what_is_wrong_with_a_machine_is_said(tmp_path: Path) -> None:
    runs = stored(tmp_path, machines=3)
    records = runs["m1"] / "slots.jsonl"
    records.write_text("nonsense\n" + records.read_text())
    with pytest.raises(UserError, match=r"m1/slots.jsonl:1: not a record of a run"):
        judged_machines(runs)


@pytest.mark.usefixtures("over_processes")
def test_what_comes_back_is_small_next_to_the_records(tmp_path: Path) -> None:
    runs = stored(tmp_path, machines=2, rounds=40)
    for name, machine in judged_machines(runs).items():
        assert len(pickle.dumps(machine)) * 10 < (runs[name] / "slots.jsonl").stat().st_size


@pytest.mark.long
def test_memory_does_not_grow_with_the_records_of_more_machines(tmp_path: Path) -> None:
    runs = stored(tmp_path, machines=9, rounds=20)
    records_bytes = (runs["m0"] / "slots.jsonl").stat().st_size
    judged_machines(dict(list(runs.items())[:1]))  # what is imported and remembered once
    few, many = (most_bytes(dict(list(runs.items())[:n])) for n in (3, 9))
    assert few > records_bytes
    assert many - few < 6 * records_bytes / 10


def most_bytes(runs: dict[str, Path]) -> int:
    """Give the most memory that judging machines one after the other takes."""
    tracemalloc.start()
    judged_machines(runs)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two CPUs")
@pytest.mark.parametrize("number", [further(signal.SIGINT), further(signal.SIGKILL)])
def test_no_process_outlives_who_started_it(tmp_path: Path, number: int) -> None:
    script = tmp_path / "over_processes.py"
    script.write_text(OVER_PROCESSES)
    runs = stored(tmp_path, machines=12, rounds=20)
    with subprocess.Popen(
        [sys.executable, script, "report", *runs.values()],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as fleet:
        wait_until(lambda: len(judging_for(fleet.pid)) >= 2)
        theirs = judging_for(fleet.pid)
        send = os.killpg if number == signal.SIGINT else os.kill
        send(fleet.pid, number)  # Ctrl-C reaches the whole group
        said = fleet.stderr.read() if fleet.stderr else b""
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in theirs))
    assert fleet.returncode in {130, -signal.SIGKILL}
    # One that is just being started says so itself where the other end was killed.
    assert number == signal.SIGKILL or b"Traceback" not in said


def judging_for(parent: int) -> list[int]:
    """Name the processes that judge for another one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            status = (process / "status").read_text()
            if f"\nPPid:\t{parent}\n" in status and b"spawn_main" in words:
                found.append(int(process.name))
    return found
