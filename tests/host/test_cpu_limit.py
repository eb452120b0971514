"""A share of a CPU is kept by the kernel."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from webdyno.host import Bench
from webdyno.host.control_group import forget_groups
from webdyno.host.cpu_limit import CpuLimit
from webdyno.model.mistake import Mistake

BUSY = "while :; do :; done"


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups take root")
@pytest.mark.parametrize("cpus", [0.2, 0.05])
def test_a_process_gets_no_more_than_its_share(cpus: float) -> None:
    bench = Bench().with_server_cpus(cpus)
    with bench.workspace() as workspace:
        group = bench.control_group(workspace)
        limit = bench.cpu_limit(workspace, group)
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
    bench = Bench().with_server_cpus(1)
    with bench.workspace() as workspace:
        assert bench.cpu_limit(workspace, None) is None
    assert len(bench.split.servers) == 1


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(Mistake, match="1000 CPUs were asked for"):
        Bench().with_server_cpus(1_000)
