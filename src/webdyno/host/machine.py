"""The machine we are on: what it is; which of its CPUs serve, load, or are left for the rest."""

import hmac
import os
import platform
import resource
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from webdyno.core.errors import UserError
from webdyno.core.machine import CpuSplit, Machine

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
    usable = set(allowed)
    mine = sorted(sorted(usable.intersection(core)) for core in cores if usable.intersection(core))
    mine += [[cpu] for cpu in sorted(usable.difference(*mine))]
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
    usable = set(allowed)
    mine = sorted(sorted(usable.intersection(core)) for core in cores if usable.intersection(core))
    mine += [[cpu] for cpu in sorted(usable.difference(*mine))]
    rest, loaded = (mine[:1], mine[1:]) if len(mine) >= CORES_WITH_A_REST else (mine[-1:], mine)
    working = _flat(loaded)
    return CpuSplit(servers=working, client=working, rest=_flat(rest), shared=False)


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
    """Give what can change a result and isn't part of the experiment."""
    return Machine(
        cpu_model=_cpu_model(),
        cpus=sorted(allowed_cpus()),
        physical_cores=psutil.cpu_count(logical=False),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        distribution=_distribution(),
        virtualisation=_virtualisation(),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        open_files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        listen_backlog_limit=_whole(_read("/proc/sys/net/core/somaxconn")),
        split=split,
        sysctls=_sysctls(),
        identity=_identity(),
    )


def _identity() -> str | None:
    """Give a keyed hash of the machine's id, which machine-id(5) asks to keep confidential."""
    known = _read("/etc/machine-id")
    return hmac.digest(b"webdyno", known.encode(), "sha256").hex()[:16] if known else None


def _sysctls() -> dict[str, str]:
    values = {name: _read(f"/proc/sys/{name.replace('.', '/')}") for name in SYSCTLS}
    return {name: " ".join(value.split()) for name, value in values.items() if value is not None}


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "Model", "cpu model"}:
            return value.strip()
    return platform.machine()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _virtualisation() -> str | None:
    """Name the container or hypervisor that this process runs in, if one shows."""
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


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
