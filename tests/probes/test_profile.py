"""What the servers' CPUs do, sampled by perf where it is there and allowed."""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from webdyno.core.errors import OperationError
from webdyno.host.machine import allowed_cpus
from webdyno.probes import profile
from webdyno.probes.profile import NOBODY, Profiler, read_by_perf, sampling_fault
from webdyno.probes.stacks import OTHERS_CODE

AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


needs_perf = pytest.mark.skipif(
    shutil.which("perf") is None or os.geteuid() != 0, reason="takes perf and root"
)


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


@needs_perf
def test_a_busy_program_is_seen() -> None:
    cpu = min(allowed_cpus())
    busy = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(busy) as process:
        try:
            os.sched_setaffinity(process.pid, {cpu})
            with Profiler([cpu], allowed_cpus()) as profiler:
                profiler.pids = {process.pid}
                time.sleep(0.5)
        finally:  # else it is waited for without end
            process.kill()
    found = profiler.profile.cpu_s
    assert sum(found.values()) > 0.1
    assert any("python" in what for what in found)


@needs_perf
def test_names_are_looked_up_in_servers_files_alone(tmp_path: Path) -> None:
    """What others call theirs may lead to files of root's, whose lines would be names."""
    cpu = min(allowed_cpus())
    environment = {"PYTHONHOME": sys.base_prefix}
    with ExitStack() as exits:
        pids = dict[str, int]()
        for name in ("server", "other"):
            (program := tmp_path / name).symlink_to(sys.executable)
            busy = exits.enter_context(
                subprocess.Popen([program, "-c", "while 1: pass"], env=environment)
            )
            exits.callback(busy.kill)
            pids[name] = busy.pid
            os.sched_setaffinity(busy.pid, {cpu})
        with Profiler([cpu], allowed_cpus()) as profiler:
            profiler.pids = {pids["server"]}
            time.sleep(0.5)
    seen = {
        name: [calls for calls in profiler.profile.stacks if calls.startswith(name)]
        for name in pids
    }
    assert any("_PyEval_EvalFrame" in calls for calls in seen["server"])
    assert seen["other"]
    assert not any("Py" in calls for calls in seen["other"])
    assert OTHERS_CODE in profiler.profile.cpu_s


SPIES = """
import os, sys, time
for _ in iter(time.monotonic, 0):
    print(flush=True)
    for name in os.listdir("/proc"):
        try:
            if open(f"/proc/{name}/cmdline", "rb").read().startswith(b"perf\\0script"):
                print("seen", flush=True)
                open(f"/proc/{name}/fd/0", "rb")
                print("read", flush=True)
        except OSError:
            pass
"""


@needs_perf
def test_a_recording_is_closed_to_the_program_that_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says what all processes on these CPUs have in memory, and where."""
    folders = list[Path]()

    def read(*arguments: str, rights: Sequence[str]) -> str:
        with pytest.raises(subprocess.CalledProcessError):
            subprocess.run([*AS_NOBODY, "cat", profiler.output], check=True, stderr=-3)
        folders.append(profiler.output.parent)
        return read_by_perf(*arguments, rights=rights)

    monkeypatch.setattr(profile, "read_by_perf", read)
    cpu = min(allowed_cpus())
    busy = [*AS_NOBODY, sys.executable, "-Sc", SPIES]
    with subprocess.Popen(busy, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        try:
            with (profiler := Profiler([cpu], allowed_cpus())):
                os.sched_setaffinity(process.pid, {cpu})
                profiler.pids = {process.pid}
                time.sleep(0.5)
        finally:
            process.kill()
        said = set(process.stdout.read().split())
        assert "seen" in said
        assert "read" not in said
    assert folders
    assert any("python" in what for what in profiler.profile.cpu_s)


@needs_perf
def test_reading_a_recording_has_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MOST_MEMORY_BYTES", 2**20)
    with pytest.raises(OperationError), Profiler([min(allowed_cpus())], allowed_cpus()):
        pass


@needs_perf
def test_perf_ends_with_webdyno() -> None:
    """Its recording would grow until the disk is full."""
    script = (
        "import os, time; from webdyno.probes.profile import Profiler\n"
        "with Profiler([min(os.sched_getaffinity(0))], os.sched_getaffinity(0)) as profiler:\n"
        "    print(profiler._process.pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        perf = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
    try:
        assert select.select([perf], [], [], 20.0)[0]
    finally:
        os.close(perf)
