"""CPUs that are kept out of deep idle, by either means, and let go however webdyno ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from waiting import wait_until
from webdyno.core.testbed import TestbedSettings
from webdyno.host import machine
from webdyno.host.machine import kept_awake, sleep_cost
from webdyno.host.netns import open_testbed

CPU = max(os.sched_getaffinity(0))
ENGINE = Path("/nonexistent/loadgen")
DRIVER = """
import sys, time
from pathlib import Path
from webdyno.host import machine
if sys.argv[1] == "spinner":
    machine.LATENCY_DEVICE = Path("/nonexistent/device")
with machine.kept_awake([int(sys.argv[2])]) as means:
    print(means, flush=True)
    time.sleep(60)
"""


def holders() -> int:
    """Count the open latency devices of this process."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(link.readlink() == machine.LATENCY_DEVICE for link in links)


def spinners(parent: int) -> list[psutil.Process]:
    children = psutil.Process(parent).children()
    return [child for child in children if "while :" in " ".join(child.cmdline())]


def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LATENCY_DEVICE", Path("/nonexistent/device"))


def test_cpus_are_awake_for_as_long_as_a_testbed_is_open() -> None:
    before, by_kernel = holders(), machine.takes_latency_limits()
    with open_testbed(TestbedSettings(keep_awake=True), ENGINE) as testbed:
        assert holders() == before + by_kernel
        assert len(spinners(os.getpid())) == (0 if by_kernel else len(testbed.split.client))
        assert ("/dev/cpu_dma_latency" in (testbed.describe().awake or "")) == by_kernel
    assert (holders(), spinners(os.getpid())) == (before, [])
    with open_testbed(TestbedSettings(), ENGINE) as testbed:
        assert holders() == before
        assert testbed.describe().awake is None


def test_without_the_kernel_a_task_spins_that_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    no_device(monkeypatch)
    with kept_awake([CPU]) as means:
        (spinner,) = spinners(os.getpid())
        assert "idle class" in means
        assert os.sched_getscheduler(spinner.pid) == os.SCHED_IDLE
        assert os.sched_getaffinity(spinner.pid) == {CPU}
        group = Path(f"/proc/{spinner.pid}/autogroup")
        assert not group.exists() or group.read_text().split()[-1] == "19"
    assert not spinner.is_running()


def test_an_error_inside_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    no_device(monkeypatch)
    with pytest.raises(FileNotFoundError), kept_awake([CPU]):
        raise FileNotFoundError
    assert spinners(os.getpid()) == []


@pytest.mark.parametrize("means", ["kernel", "spinner"])
def test_nothing_outlives_a_killed_webdyno(means: str) -> None:
    words = [sys.executable, "-c", DRIVER, means, str(CPU)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        held = spinners(driver.pid)
        assert bool(held) == (means == "spinner" or not machine.takes_latency_limits())
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    wait_until(lambda: not any(spinner.is_running() for spinner in held))


def test_a_sleep_costs_something() -> None:
    cost = sleep_cost(CPU)
    assert cost.cpu_us > 0
    assert cost.late_us > 0
