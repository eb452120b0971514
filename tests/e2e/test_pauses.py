"""Whose a pause is: of real servers under load that are stopped, starved, or stop by themselves."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from e2e import pausing
from e2e.commands import environment
from variants import further
from webdyno.core.looks import Stall
from webdyno.core.records import LongLookRecord, SlotRecord
from webdyno.evidence.long_look import look_at
from webdyno.evidence.slot_stalls import own_stall_s
from webdyno.evidence.stalls import stalls_of
from webdyno.host.this_machine import Testbed

TESTS = Path(__file__).parents[1]
PAUSE_S = 1.0
LONG_S = 0.7
"""Restless machines make short pauses of their own, and take parts of long ones."""
FREEZERS = Path("/sys/fs/cgroup/freezer")

Disturb = Callable[[psutil.Process], None]


def looked(
    folder: Path, how: str = "steady", disturb: Disturb = lambda _: None, look_s: float = 5.0
) -> tuple[LongLookRecord, SlotRecord]:
    """Look at a server, and disturb that after two seconds; give it as a slot as well."""
    words = [sys.executable, "-m", "e2e.pausing", str(folder), str(look_s), how]
    with subprocess.Popen(
        words, cwd=TESTS, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "begins\n"
            looking = psutil.Process(child.pid)
            go_first([looking, *looking.children(recursive=True)])
            time.sleep(pausing.RAMP_UP_S + 2.0)
            disturb(looking)
            record, slot = child.stdout.read().splitlines()
        finally:
            child.kill()
    return LongLookRecord.model_validate_json(record), SlotRecord.model_validate_json(slot)


def go_first(processes: Sequence[psutil.Process]) -> None:
    """Have them go before others on the machine, whose work would be a pause as well."""
    for each in processes:
        with suppress(OSError, psutil.Error):
            each.nice(-20)
            Path(f"/proc/{each.pid}/autogroup").write_text("-20")


def long_ones(stalls: Sequence[Stall]) -> list[Stall]:
    return [it for it in stalls if it.length_s > LONG_S]


def stop(processes: Sequence[psutil.Process]) -> None:
    """Stop processes for a while, the last one first."""
    for each in reversed(processes):
        each.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE_S)
    for each in processes:
        each.send_signal(signal.SIGCONT)


def stop_the_load_generator(child: psutil.Process) -> None:
    stop([it for it in child.children(recursive=True) if "loadgen" in it.name()])


def stop_all(child: psutil.Process) -> None:
    stop([child, *child.children(recursive=True)])


def freeze(child: psutil.Process) -> None:
    """Freeze all processes, as a container's are that is paused."""
    if not (FREEZERS / "cgroup.procs").exists():
        pytest.skip("control groups of the second version count the servers' use as well")
    group = FREEZERS / f"webdyno-test-{os.getpid()}"
    group.mkdir()
    processes = [child, *child.children(recursive=True)]
    try:
        move(processes, group)
        (group / "freezer.state").write_text("FROZEN")
        time.sleep(PAUSE_S)
    finally:
        (group / "freezer.state").write_text("THAWED")
        move(processes, FREEZERS)
        group.rmdir()


def move(processes: Sequence[psutil.Process], group: Path) -> None:
    for each in processes:
        (group / "cgroup.procs").write_text(str(each.pid))


def starve(_: psutil.Process) -> None:
    """Burn the servers' CPUs before anybody else gets them."""
    cpus = ",".join(map(str, Testbed().split.servers))
    burn = f"import time\nend = time.monotonic() + {PAUSE_S}\nwhile time.monotonic() < end: pass"
    words = ("chrt", "--fifo", "1", "taskset", "--cpu-list", cpus, sys.executable, "-c", burn)
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("nobody may go before others here")


@pytest.mark.measures  # its processes go before those of all other tests
@pytest.mark.parametrize(
    "disturb", [stop_the_load_generator, further(stop_all), further(freeze), starve]
)
def test_a_pause_that_others_made_is_not_the_servers(open_folder: Path, disturb: Disturb) -> None:
    record, slot = looked(open_folder, disturb=disturb)
    assert not long_ones(stalls_of(record))
    assert own_stall_s(slot) == 0
    if disturb is starve:
        assert long_ones(look_at(record).excused)


@pytest.mark.measures
@pytest.mark.parametrize("how", ["sleeps", "burns"])
def test_a_pause_of_the_servers_own_is_not_excused(open_folder: Path, how: str) -> None:
    record, slot = looked(open_folder, how)
    assert long_ones(stalls_of(record))
    assert own_stall_s(slot) > LONG_S


@pytest.mark.measures
def test_servers_that_have_themselves_stopped_again_and_again_are_not_excused(
    open_folder: Path,
) -> None:
    record, _ = looked(open_folder, "stops", look_s=7.0)
    assert len(long_ones(stalls_of(record))) >= 2
