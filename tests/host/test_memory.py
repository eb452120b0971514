"""Memory limits: kept by real control groups where there are some, refused where there are none."""

import os
import time
from pathlib import Path

import pytest

from webdyno.host import Bench
from webdyno.host.control_group import forget_groups
from webdyno.host.memory import MemoryLimit, MemoryReading
from webdyno.model.mistake import Trouble

MIB = 2**20
EATER = 'x=a; while :; do x="$x$x"; done'
"""A shell whose variable doubles until there is no memory left."""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_who_takes_too_much_is_killed_and_counted(tmp_path: Path) -> None:
    bench = Bench()
    workspace = bench.workspace()
    group = bench.control_group(workspace)
    try:
        limit = bench.memory_limit(workspace, group, 32 * MIB)
    except Trouble:
        workspace.remove()
        pytest.skip("no memory controller here")
    before = limit.reading()
    process = bench.spawn(
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
    monkeypatch.setattr("webdyno.host.memory.mounts", list)
    monkeypatch.setattr("webdyno.host.memory.mount_point", lambda: None)
    with pytest.raises(Trouble, match="a memory limit was asked for and can't be kept here"):
        MemoryLimit.impose("test", None, 32 * MIB)


def test_what_happened_between_two_readings() -> None:
    use = MemoryReading(100, 90, 5, 20).since(MemoryReading(100, 50, 2, 8))
    assert (use.peak_bytes, use.oom_kills, use.reclaims) == (90, 3, 12)
