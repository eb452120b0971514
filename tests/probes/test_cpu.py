"""CPU time of process trees: both means see the same work, ended children included."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from webdyno.host.control_group import ControlGroup
from webdyno.host.server_process import ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.probes.cpu import CpuReading, server_cpu, tree_cpu
from webdyno.probes.scene import Sampler
from webdyno.servers.running import RunningStack

BURN = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
SCRIPT = f"({BURN}); {BURN}; echo done; sleep 600"
"""Half of the work is done by a child that has ended."""


@dataclass
class Burner:
    """A process that has used some CPU time, in the shape of a running stack."""

    process: ServerProcess
    group: ControlGroup | None

    def wardens(self) -> list[int]:
        """The process whose descendant it is."""
        return [self.process.warden_pid]

    def found_pids(self) -> list[int]:
        """Nothing ran before."""
        return []

    def contained(self) -> list[ServerProcess]:
        """No daemon runs it."""
        return []


@pytest.fixture
def burner(tmp_path: Path) -> Iterator[Burner]:
    testbed = Testbed()
    workspace = Workspace()
    group = ControlGroup.create(workspace.name)
    process = testbed.spawn(
        ["sh", "-c", SCRIPT],
        cwd=workspace.path,
        env={"PATH": "/usr/bin:/bin"},
        log=tmp_path / "log",
        workspace=workspace,
        groups_to_join=[group.entry("burner")] if group else [],
    )
    while "done" not in (tmp_path / "log").read_text():
        time.sleep(0.01)
    time.sleep(0.05)
    yield Burner(process, group)
    process.stop()
    if group:
        group.end()
    workspace.remove()


def cpu_of(burner: Burner) -> CpuReading:
    return server_cpu(cast("RunningStack", burner))


def test_both_means_agree(burner: Burner) -> None:
    if burner.group is None:
        pytest.skip("no control groups here")
    by_group = cpu_of(burner)
    burner.group = None
    by_tree = cpu_of(burner)
    assert (by_group.means, by_tree.means) == ("cgroup-v2", "procfs")
    total_s = by_group.user_s + by_group.sys_s
    assert total_s > 0.1
    assert by_tree.user_s + by_tree.sys_s == pytest.approx(total_s, abs=0.03)


def test_a_quiet_server_uses_nothing(burner: Burner) -> None:
    before = cpu_of(burner)
    time.sleep(0.1)
    assert cpu_of(burner).since(before).cpu_s < 0.01


def test_what_was_used_between_two_readings() -> None:
    use = CpuReading(3.0, 1.5, "procfs").since(CpuReading(1.0, 1.0, "procfs"))
    assert (use.cpu_user_s, use.cpu_sys_s, use.cpu_s) == (2.0, 0.5, 2.5)


def test_a_program_may_have_any_name() -> None:
    ours = Path("/proc/self/comm")
    name = ours.read_bytes()
    ours.write_bytes(b") \xff\n")
    try:
        assert tree_cpu([], [os.getpid()]).cpu_s > 0
    finally:
        ours.write_bytes(name)


def test_what_a_look_raises_is_raised_where_its_samples_end() -> None:
    looked, sampler = Event(), Sampler(every_s=0.001)

    def look(_: float) -> None:
        looked.set()
        raise ZeroDivisionError

    sampler.add(look)
    sampler.start()
    assert looked.wait(20)
    sampler.stop(KeyError)
    with pytest.raises(ZeroDivisionError):
        sampler.stop()
