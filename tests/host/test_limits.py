"""Limits: kept by real control groups where there are some, refused where there are none."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from webdyno.core.errors import OperationError, UserError
from webdyno.host.control_group import (
    ControlGroup,
    CpuLimit,
    MemoryLimit,
    MemoryReading,
    forget_groups,
)
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace

MIB = 2**20
EATER = 'x=a; while :; do x="$x$x"; done'
"""A shell whose variable doubles until there is no memory left."""
BUSY = "while :; do :; done"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_who_takes_too_much_is_killed_and_counted(tmp_path: Path) -> None:
    testbed = Testbed()
    workspace = Workspace()
    group = ControlGroup.create(workspace.name)
    try:
        limit = MemoryLimit.impose(workspace.name, group, 32 * MIB)
    except OperationError:
        workspace.remove()
        pytest.skip("no memory controller here")
    before = limit.reading()
    process = testbed.spawn(
        ["sh", "-c", EATER],
        cwd=workspace.path,
        env={"PATH": "/usr/bin:/bin"},
        log=tmp_path / "log",
        workspace=workspace,
        groups_to_join=[*([group.entry("eater")] if group else []), *limit.entries()],
    )
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    use = limit.reading().since(before)
    process.stop()
    if group:
        group.end()
    forget_groups(workspace.name)
    workspace.remove()
    assert process.poll() == 128 + 9
    assert use.limit_bytes == 32 * MIB
    assert use.oom_kills == 1
    assert 16 * MIB < use.peak_bytes <= 32 * MIB


def test_a_limit_that_nothing_can_keep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.host.control_group.mounts", list)
    monkeypatch.setattr("webdyno.host.control_group.mount_point", lambda: None)
    with pytest.raises(OperationError, match="a memory limit was requested and can't be kept here"):
        MemoryLimit.impose("test", None, 32 * MIB)


def test_what_happened_between_two_readings() -> None:
    use = MemoryReading(100, 90, 5, 20).since(MemoryReading(100, 50, 2, 8))
    assert (use.peak_bytes, use.oom_kills, use.reclaims) == (90, 3, 12)


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups take root")
@pytest.mark.parametrize("cpus", [0.2, 0.05])
def test_a_process_gets_no_more_than_its_share(cpus: float) -> None:
    testbed = Testbed().with_server_cpus(cpus)
    with Workspace() as workspace:
        group = ControlGroup.create(workspace.name)
        limit = testbed.cpu_limit(workspace, group)
        assert isinstance(limit, CpuLimit)
        entries = limit.entries() or [limit.folder / "cgroup.procs"]
        join = "; ".join(f"echo 0 >{entry}" for entry in entries)
        with subprocess.Popen(["/bin/sh", "-c", f"{join}; {BUSY}"]) as busy:
            time.sleep(0.2)
            began_s, used_s = time.monotonic(), _cpu_s(busy.pid)
            time.sleep(1)
            share = (_cpu_s(busy.pid) - used_s) / (time.monotonic() - began_s)
            busy.kill()
        forget_groups(workspace.name)
        assert share < cpus + 0.1
        assert not limit.folder.exists()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_whole_cpus_need_no_limit() -> None:
    testbed = Testbed().with_server_cpus(1)
    with Workspace() as workspace:
        assert testbed.cpu_limit(workspace, None) is None
    assert len(testbed.split.servers) == 1


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(UserError, match="1000 CPUs were requested"):
        Testbed().with_server_cpus(1_000)
