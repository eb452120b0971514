"""How often servers call the kernel, by what `perf stat` counts."""

import os
import shutil
import sys
from pathlib import Path
from subprocess import Popen, run
from time import sleep

import pytest

from webdyno.host.machine import allowed_cpus
from webdyno.probes.profile import ALL_CALLS, OTHER_CALLS, PERF, SystemCalls, counts_of

SAID = """\
# started on Mon Nov 23 18:00:00 2026

1200;;raw_syscalls:sys_enter;501000000;100.00;;
700;;syscalls:sys_enter_epoll_wait;501000000;100.00;;
450;;syscalls:sys_enter_writev;501000000;100.00;;
0;;syscalls:sys_enter_sendfile64;501000000;100.00;;
<not counted>;;syscalls:sys_enter_read;0;0.00;;
"""


def test_calls_are_counted_by_name_and_what_is_left_over_as_others() -> None:
    counts = counts_of(SAID.splitlines())
    assert counts == {"epoll_wait": 700, "writev": 450, OTHER_CALLS: 50}


def test_without_perf_nothing_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with SystemCalls([0], [0]) as looked:
        pass
    assert looked.counts is None


@pytest.mark.skipif(shutil.which(PERF) is None, reason="perf is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="tracepoints take root")
def test_the_calls_of_a_program_are_seen() -> None:
    cpu = min(allowed_cpus())
    if run([PERF, "stat", "-e", ALL_CALLS, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no tracepoints")
    calling = [sys.executable, "-c", "import os\nwhile True: os.stat('/')"]
    with Popen(calling) as process:
        os.sched_setaffinity(process.pid, {cpu})
        with SystemCalls([cpu], allowed_cpus()) as looked:
            sleep(0.5)
        process.kill()
    calls = looked.counts
    assert calls is not None
    assert max(calls, key=lambda it: calls[it]) in {"newfstatat", "newstat", "stat", OTHER_CALLS}
    assert sum(calls.values()) > 1000
