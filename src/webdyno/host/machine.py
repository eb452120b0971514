"""Describes this machine for a run's record."""

import hmac
import os
import platform
import resource
from pathlib import Path

import psutil

from webdyno.host.cpus import allowed_cpus
from webdyno.model.machine import CpuSplit, Machine

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
    found = {name: _read(f"/proc/sys/{name.replace('.', '/')}") for name in SYSCTLS}
    return {name: " ".join(value.split()) for name, value in found.items() if value is not None}


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
