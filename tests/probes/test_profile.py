"""What the servers' CPUs do, sampled by perf where it is there and allowed."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from webdyno.host.machine import allowed_cpus
from webdyno.probes.profile import Profiler, sampling_fault


def test_where_nothing_can_be_sampled_it_says_what_would_help(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install linux-perf" in (sampling_fault() or "")
    refuses = tmp_path / "perf"
    refuses.write_text("#!/bin/sh\necho 'No permission to enable cpu-clock event.' >&2; exit 255\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fault = sampling_fault() or ""
    assert "No permission to enable cpu-clock event" in fault
    assert "kernel.perf_event_paranoid is -1" in fault


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="perf of other processes takes root")
def test_a_busy_program_is_seen() -> None:
    cpu = min(allowed_cpus())
    busy = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(busy) as process:
        try:
            os.sched_setaffinity(process.pid, {cpu})
            with Profiler([cpu], allowed_cpus()) as profiler:
                time.sleep(0.5)
        finally:  # else it is waited for without end
            process.kill()
    found = profiler.profile.cpu_s
    assert sum(found.values()) > 0.1
    assert any("python" in what for what in found)
