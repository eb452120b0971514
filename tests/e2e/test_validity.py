"""Validity rules fire on real causes: each test makes one, and looks for the warning."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from e2e.commands import (
    QUICK,
    left_behind,
    master_processes,
    next_to,
    run_rounds,
    scratch,
    started_webdyno,
    wait_for,
    webdyno,
)
from webdyno.config.catalogue import BUILT_IN
from webdyno.core.judgement import ValidityWarning
from webdyno.host.this_machine import Testbed
from webdyno.load.engine import find_loadgen
from webdyno.measure.folder import RunFolder
from webdyno.validity import warnings_of

pytestmark = pytest.mark.measures

LONGER_SLOTS = (
    "--set=measure.slot_s=0.3",
    "--set=measure.warmup_s=0.1",
    "--set=measure.slots_per_variant=4",
    "--set=measure.budget_s=1s",
)
"""In the place of QUICK."""
QUOTA_US, PERIOD_US = 10_000, 100_000
CPU_CONTROLLER = Path("/sys/fs/cgroup/cpu")


def found_in(folder: Path) -> dict[str, list[ValidityWarning]]:
    """The warnings of the run in a test's folder, by rule."""
    run = RunFolder.open(folder / "run")
    by_rule: dict[str, list[ValidityWarning]] = {}
    for warning in warnings_of(run.data().points[0]):
        by_rule.setdefault(warning.rule, []).append(warning)
    return by_rule


def odd_nginx(folder: Path, right: str, odd: str) -> list[str]:
    """A catalogue with a stack `odd`, an nginx with a line of its configuration changed."""
    service = folder / "catalog/services/odd"
    shutil.copytree(BUILT_IN / "services/nginx", service)
    template = service / "nginx.conf.j2"
    text = template.read_text()
    assert right in text
    template.write_text(text.replace(right, odd))
    stack = folder / "catalog/stacks/odd"
    shutil.copytree(BUILT_IN / "stacks/nginx", stack)
    file = stack / "stack.toml"
    file.write_text(file.read_text().replace('service = "nginx"', 'service = "odd"'))
    return [f"--catalog={folder / 'catalog'}", "--yes", "--set=variants.nginx.stack=odd"]


def test_a_server_that_closes_kept_connections(tmp_path: Path) -> None:
    odd = odd_nginx(tmp_path, "keepalive_requests 1000000000;", "keepalive_requests 10;")
    done = webdyno("run", *QUICK, *odd, "--output=run", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    (warning,) = found_in(tmp_path)["keep-alive"]
    assert (warning.variant, warning.severity) == ("nginx", "invalid")
    # Connections still open at a slot's end have answered, too.
    (responses,) = re.findall(r"one in (\d+) responses", warning.what)
    assert 10 <= int(responses) <= 12


def test_a_listen_queue_that_is_too_short(tmp_path: Path) -> None:
    short = "--set=variants.nginx.settings.backlog=1"
    crowd = ("--set=load.connections=200", "--set=load.keepalive=never")
    run_rounds(1, "run", *LONGER_SLOTS, short, *crowd, folder=tmp_path)
    assert "nginx" in {warning.variant for warning in found_in(tmp_path)["listen-overflow"]}


def test_other_work_on_the_servers_cpus(tmp_path: Path) -> None:
    cpus = Testbed().split
    if cpus.shared:
        pytest.skip("client and servers share the CPUs here, so nothing on them is foreign")
    with hog(cpus.servers):
        run_rounds(1, "run", *LONGER_SLOTS, folder=tmp_path)
    # Where the hypervisor holds all CPUs back, Apache's threads can leave the others too little.
    assert "nginx" in {warning.variant for warning in found_in(tmp_path)["other-work"]}


@contextmanager
def hog(cpus: list[int]) -> Iterator[None]:
    """Two processes for each of these CPUs that never rest."""
    # Each in a session of its own: the kernel shares CPUs among sessions, and ours may take all.
    spinners = [
        subprocess.Popen([sys.executable, "-I", "-c", "while True: pass"], start_new_session=True)
        for _ in 2 * cpus
    ]
    try:
        for spinner in spinners:
            os.sched_setaffinity(spinner.pid, cpus)
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


@pytest.fixture
def quota() -> Iterator[Path]:
    """A control group that gets a tenth of a core."""
    group = CPU_CONTROLLER / f"webdyno-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
    except OSError:
        pytest.skip("no CPU quotas by control groups of version 1 here, or no right to them")
    yield group
    deadline = time.monotonic() + 10
    while group.exists() and time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.02)


def test_a_client_held_to_a_tenth_of_a_core(
    tmp_path: Path, quota: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if Testbed().split.shared:
        pytest.skip("client and servers share the CPUs here")
    wrapper = tmp_path / "loadgen"
    wrapper.write_text(f'#!/bin/sh\necho $$ > {quota}/cgroup.procs\nexec {find_loadgen()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("WEBDYNO_LOADGEN", str(wrapper))
    run_rounds(1, "run", *LONGER_SLOTS, folder=tmp_path)
    assert found_in(tmp_path)["client-cpu-starved"]


def test_a_server_killed_in_the_middle(tmp_path: Path) -> None:
    with started_webdyno("run", *LONGER_SLOTS, "--output=run", folder=tmp_path) as process:
        wait_for(tmp_path / "run/slots.jsonl", 3)
        masters = master_processes(tmp_path, b"nginx: master")
        assert masters
        for pid in masters:
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert [warning.variant for warning in found_in(tmp_path)["incident"]] == ["nginx"]
    assert left_behind(tmp_path) == []


def test_a_client_that_is_stopped_again_and_again(tmp_path: Path) -> None:
    with restless(tmp_path, "loadgen"):
        run_rounds(1, "run", *LONGER_SLOTS, folder=tmp_path)
    assert found_in(tmp_path)["client-stalled"]


def test_servers_that_are_stopped_again_and_again(tmp_path: Path) -> None:
    with restless(tmp_path, "nginx"):
        run_rounds(1, "run", *LONGER_SLOTS, folder=tmp_path)
    assert "nginx" in {warning.variant for warning in found_in(tmp_path)["servers-stopped"]}


@contextmanager
def restless(folder: Path, name: str) -> Iterator[None]:
    """Stops processes of a test's folder that have this name, and lets them go on, by turns."""

    def stop_and_go(enough: threading.Event) -> None:
        while not enough.wait(0.2):
            for reported in (signal.SIGSTOP, signal.SIGCONT):
                for process in psutil.process_iter():
                    with suppress(psutil.Error):
                        if process.name() == name and _is_ours(process, folder):
                            process.send_signal(reported)
                time.sleep(0.15)

    with next_to(stop_and_go):
        yield


def _is_ours(process: psutil.Process, folder: Path) -> bool:
    """Whether a process is of a run in this folder: it or its files are in there."""
    places = (str(folder), str(scratch(folder)))
    return any(place in text for place in places for text in (process.cwd(), *process.cmdline()))


def test_another_programs_full_listen_queue_invalidates_nothing(tmp_path: Path) -> None:
    with crowded_listener():
        run_rounds(1, "run", *QUICK, folder=tmp_path)
    assert not {"listen-overflow", "syn-retransmits"} & set(found_in(tmp_path))
    run = RunFolder.open(tmp_path / "run")
    dropped = [
        record.readings.network.listen_drops
        for record in run.records()
        if record.kind == "slot" and record.readings
    ]
    assert sum(dropped) > 0


@contextmanager
def crowded_listener() -> Iterator[None]:
    """A listener next to the run that drops connection after connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:

        def crowd(enough: threading.Event) -> None:
            while not enough.wait(0.01):
                with socket.socket() as client, suppress(BlockingIOError):
                    client.setblocking(False)
                    client.connect(listener.getsockname())

        with next_to(crowd):
            yield
