"""CPUs kept out of deep idle, and what a sleep costs where they aren't.

A CPU without work halts. In a virtual machine that leaves the guest, and to come back takes tens of
microseconds, which an open loop pays for each request that it sends on time.
"""

import ctypes
import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from struct import pack
from typing import NamedTuple

from webdyno.core.errors import OperationError
from webdyno.host.children import end_with_parent

logger = logging.getLogger(__name__)

LATENCY_DEVICE = Path("/dev/cpu_dma_latency")
IDLE_DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")
SPINNER = ("sh", "-c", "while :; do :; done")
LOWEST = "19"
"""Niceness that leaves an autogroup 1.5% of a CPU that others want."""
WITHIN_S = 2.0
SLEEPS, SLEEP_S = 200, 100e-6
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30
_libc = ctypes.CDLL(None)


def kept_awake(cpus: Sequence[int]) -> AbstractContextManager[str]:
    """Keep CPUs out of deep idle until the end, however webdyno ends; it gives the means.

    Raises OperationError where that isn't possible.
    """
    return polling_when_idle() if takes_latency_limits() else never_idle(cpus)


def takes_latency_limits() -> bool:
    """Return whether we may set one, and anybody heeds it: without a driver all idle CPUs halt."""
    try:
        driver = IDLE_DRIVER.read_text().strip()
    except OSError:
        return False
    return driver != "none" and os.access(LATENCY_DEVICE, os.W_OK)


@contextmanager
def polling_when_idle() -> Iterator[str]:
    """Allow no latency of waking up, so that all CPUs poll when they are idle.

    It holds while the device is open (Documentation/power/pm_qos_interface.rst); programs that we
    start don't inherit it.
    """
    device = os.open(LATENCY_DEVICE, os.O_WRONLY)
    try:
        os.write(device, pack("i", 0))
        yield f"all CPUs poll when idle ({LATENCY_DEVICE})"
    finally:
        os.close(device)


@contextmanager
def never_idle(cpus: Sequence[int]) -> Iterator[str]:
    """Keep some CPUs busy with a task of the idle class each, which gives way to all (sched(7))."""
    with ExitStack() as exits:
        for cpu in cpus:
            exits.enter_context(_spinner(cpu))
        yield "a task of the idle class on each of the client's CPUs"


@contextmanager
def _spinner(cpu: int) -> Iterator[None]:
    process = subprocess.Popen(
        SPINNER,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        # It is over before this returns: nobody can be killed in between.
        preexec_fn=partial(end_with_parent, signal.SIGKILL, os.getpid()),
    )
    logger.debug("process %d keeps CPU %d from idling", process.pid, cpu)
    try:
        _give_way(process.pid, cpu)
        yield
    finally:
        process.kill()
        process.wait()


def _give_way(pid: int, cpu: int) -> None:
    try:
        os.sched_setaffinity(pid, {cpu})
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        _lower_autogroup(Path(f"/proc/{pid}/autogroup"))
    except OSError as error:
        raise OperationError(
            f"CPUs can't be kept awake here: {error.strerror}; leave testbed.keep_awake out"
        ) from error


def _lower_autogroup(group: Path) -> None:
    """Where the kernel has sessions share CPUs, not tasks, a task's own class isn't enough."""
    patience_s = time.monotonic() + WITHIN_S
    while group.exists():
        try:
            group.write_text(LOWEST)
        except BlockingIOError:  # ordinary users may do so ten times a second (sched(7))
            if time.monotonic() > patience_s:
                raise
            time.sleep(0.05)
        else:
            return


class SleepCost(NamedTuple):
    """What a sleep costs, in microseconds."""

    cpu_us: float
    """CPU time."""
    late_us: float
    """How much later than requested half of all sleeps end."""


def sleep_cost(cpu: int) -> SleepCost:
    """Sleep on a CPU for some hundredths of a second, with timers as exact as the engine's."""
    with exact_timers([cpu]):
        late_s, began_cpu_s = [], time.thread_time()
        for _ in range(SLEEPS):
            began_s = time.perf_counter()
            time.sleep(SLEEP_S)
            late_s.append(time.perf_counter() - began_s - SLEEP_S)
        cpu_s = time.thread_time() - began_cpu_s
    return SleepCost(cpu_us=cpu_s / SLEEPS * 1e6, late_us=median(late_s) * 1e6)


@contextmanager
def exact_timers(cpus: Sequence[int]) -> Iterator[None]:
    """Be on some CPUs, with timers as exact as the engine's."""
    allowed = os.sched_getaffinity(0)
    slack_ns = _libc.prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)
    os.sched_setaffinity(0, cpus)
    _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0)
        os.sched_setaffinity(0, allowed)
