"""The machine: what it is, and which CPUs serve, load, are left for the rest, and are kept awake.

A CPU without work halts. In a virtual machine that leaves the guest, and to come back takes tens of
microseconds, which an open loop pays for each request that it sends on time.
"""

import ctypes
import hmac
import logging
import os
import platform
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from struct import pack
from typing import NamedTuple

import psutil

from webdyno.core.errors import OperationError, UserError
from webdyno.core.testbed import CpuSplit, Machine
from webdyno.host.children import end_with_parent

logger = logging.getLogger(__name__)

SYSFS = Path("/sys/devices/system/cpu")

CORES_WITH_REST = 6
"""From this many cores on, some are kept free of servers and client."""
CORES_PER_REST_CORE = 16
CORES_WITH_A_REST = 4
"""The same for a host that has only servers, or only a client."""
SYSCTLS = (
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "fs.file-max",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "vm.overcommit_memory",
    "vm.swappiness",
)
"""What people tune for web servers, and what moves results by itself."""
LATENCY_DEVICE = Path("/dev/cpu_dma_latency")
IDLE_DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")
SPINNER = ("sh", "-c", "while :; do :; done")
LOWEST_NICENESS = "19"
"""Niceness that leaves an autogroup 1.5% of a CPU that others want."""
AUTOGROUP_WITHIN_S = 2.0
SLEEPS, SLEEP_S = 200, 100e-6
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30
_libc = ctypes.CDLL(None)


def split_cpus(
    allowed: Iterable[int], cores: Iterable[Sequence[int]], server_cores: int | None = None
) -> CpuSplit:
    """Split the CPUs that this process may use; `cores` are the CPUs of each physical core.

    Servers and client get half each, the client the larger one: a client that is short of CPU
    measures itself. CPUs of one core are never split between the two, since they share its
    execution units. With six cores and more, one in sixteen (at least one) is left for the rest,
    such as probes and the kernel's own work; with fewer the rest shares the client's CPUs. A
    single core has to do for all. With `server_cores` the servers get so many cores instead; raise
    UserError where that leaves the client none.
    """
    mine = _usable_cores(allowed, cores)
    if len(mine) == 1:
        everything = mine[0]
        return CpuSplit(servers=everything, client=everything, rest=everything, shared=True)
    # The first core also has most of a machine's interrupts and housekeeping: best for the rest.
    for_rest = -(-len(mine) // CORES_PER_REST_CORE) if len(mine) >= CORES_WITH_REST else 0
    rest, loaded = mine[:for_rest], mine[for_rest:]
    if server_cores is not None and server_cores >= len(loaded):
        raise UserError(
            f"{server_cores} cores for the servers leave the client none: there are {len(loaded)} "
            "for both"
        )
    boundary = server_cores or len(loaded) // 2
    servers, client = loaded[:boundary], loaded[boundary:]
    return CpuSplit(
        servers=_flat(servers), client=_flat(client), rest=_flat(rest or client), shared=False
    )


def whole_split(allowed: Iterable[int], cores: Iterable[Sequence[int]]) -> CpuSplit:
    """Split the CPUs of a host that only serves, or only makes load: whichever it does has them.

    From four cores on the first is left for the rest: what gives this host its orders, too.
    """
    mine = _usable_cores(allowed, cores)
    rest, loaded = (mine[:1], mine[1:]) if len(mine) >= CORES_WITH_A_REST else (mine[-1:], mine)
    working = _flat(loaded)
    return CpuSplit(servers=working, client=working, rest=_flat(rest), shared=False)


def _usable_cores(allowed: Iterable[int], cores: Iterable[Sequence[int]]) -> list[list[int]]:
    """The CPUs of each core that may be used; those of unknown cores are cores of their own."""
    usable = set(allowed)
    mine = sorted(sorted(usable.intersection(core)) for core in cores if usable.intersection(core))
    return mine + [[cpu] for cpu in sorted(usable.difference(*mine))]


def allowed_cpus() -> set[int]:
    return os.sched_getaffinity(0)


def physical_cores() -> list[list[int]]:
    """CPUs of each physical core, as the kernel reports it; empty where it doesn't."""
    lists = SYSFS.glob("cpu[0-9]*/topology/thread_siblings_list")
    return [list(core) for core in sorted({tuple(_cpu_list(path.read_text())) for path in lists})]


def _cpu_list(text: str) -> list[int]:
    """Read the kernel's notation for CPUs: `0-3,8`."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def _flat(cores: list[list[int]]) -> list[int]:
    return sorted(cpu for core in cores for cpu in core)


def describe_machine(split: CpuSplit) -> Machine:
    """Return what can change a result and isn't part of the experiment."""
    known, backlog = _read("/etc/machine-id"), _read("/proc/sys/net/core/somaxconn")
    distribution = dict[str, str]()
    with suppress(OSError):
        distribution = platform.freedesktop_os_release()
    sysctls = {name: _read(f"/proc/sys/{name.replace('.', '/')}") for name in SYSCTLS}
    return Machine(
        cpu_model=_cpu_model(),
        cpus=sorted(allowed_cpus()),
        physical_cores=psutil.cpu_count(logical=False),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        distribution=distribution.get("PRETTY_NAME", platform.system()),
        virtualisation=_virtualisation(),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        open_files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        listen_backlog_limit=int(backlog) if backlog and backlog.isdigit() else None,
        split=split,
        sysctls={name: " ".join(value.split()) for name, value in sysctls.items() if value},
        # machine-id(5) asks to keep the id itself confidential.
        identity=known and hmac.digest(b"webdyno", known.encode(), "sha256").hex()[:16],
    )


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "Model", "cpu model"}:
            return value.strip()
    return platform.machine()


def _virtualisation() -> str | None:
    """The container or hypervisor that this process runs in, if one shows."""
    if Path("/.dockerenv").exists():
        return "docker"
    if container := os.environ.get("container"):  # noqa: SIM112 (systemd spells it so)
        return container
    if product := _read("/sys/class/dmi/id/product_name"):
        known = ("KVM", "VMware", "VirtualBox", "Virtual Machine", "Google", "EC2", "OpenStack")
        if any(word in product for word in known):
            return product
    flags = _read("/proc/cpuinfo") or ""
    return "virtual machine" if " hypervisor" in flags else None


def first_number(file: Path, otherwise: int) -> int:
    """Return the number that a file of the kernel's begins with; `otherwise` where it has none."""
    try:
        return int(file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return otherwise


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


def kept_awake(cpus: Sequence[int]) -> AbstractContextManager[str]:
    """Keep CPUs out of deep idle, however webdyno ends; give the means or raise OperationError."""
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
    patience_s = time.monotonic() + AUTOGROUP_WITHIN_S
    while group.exists():
        try:
            group.write_text(LOWEST_NICENESS)
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
