"""The client probe sees threads that wait for a CPU."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from webdyno.probes.cpu import ClientReading

SPIN = "while True: pass"


def test_two_that_want_one_cpu_wait_for_each_other() -> None:
    cpu = min(os.sched_getaffinity(0))
    spinners = [subprocess.Popen([sys.executable, "-I", "-c", SPIN]) for _ in range(3)]
    try:
        for spinner in spinners:
            os.sched_setaffinity(spinner.pid, [cpu])
        time.sleep(0.2)
        began = time.monotonic()
        before = ClientReading.read(spinners[0].pid)
        time.sleep(0.5)
        share = ClientReading.read(spinners[0].pid).share_since(before, time.monotonic() - began)
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    if share is None:
        pytest.skip("this kernel doesn't tell")
    assert 0.4 <= share <= 1.0


def test_one_that_sleeps_does_not_wait() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        while psutil.Process(sleeper.pid).status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        before = ClientReading.read(sleeper.pid)
        time.sleep(0.1)
        share = ClientReading.read(sleeper.pid).share_since(before, 0.1)
        sleeper.kill()
    assert share is None or share < 0.1


def test_without_a_process_nothing_is_known() -> None:
    nothing = ClientReading.read(None)
    assert nothing.share_since(nothing, 1.0) is None
