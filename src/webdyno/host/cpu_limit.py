"""A limit on the CPU time of a group of processes, kept by the kernel's control groups."""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Literal, NamedTuple

from webdyno.host.control_group import ControlGroup, mount_point, mounts
from webdyno.model.mistake import Trouble

PERIOD_US = 5_000
"""The kernel counts anew so often. A short one: whoever has used up its share stands still until
then, and nothing that is measured should be as long as that."""
LEAST_QUOTA_US = 1_000
"""The kernel takes no smaller one (`min_cfs_quota_period` in kernel/sched/core.c)."""


class _Quota(NamedTuple):
    """So much CPU time in each period, in microseconds."""

    time_us: int
    period_us: int

    @classmethod
    def of(cls, cpus: float) -> "_Quota":
        """Give that of so many CPUs, in the shortest period that the kernel takes for it."""
        period_us = max(PERIOD_US, ceil(LEAST_QUOTA_US / cpus))
        return cls(round(cpus * period_us), period_us)


class CpuLimit(NamedTuple):
    """A control group whose processes together get so much CPU time and no more.

    It goes with the other groups of its name.
    """

    folder: Path
    means: Literal["cgroup-v2", "cgroup-v1"]
    """What keeps it."""

    @classmethod
    def impose(cls, name: str, group: ControlGroup | None, cpus: float) -> "CpuLimit":
        """Limit a group to so many CPUs' time, or one that is made by that name.

        Raise Trouble where this machine has no means to do it.
        """
        quota = _Quota.of(cpus)
        found = _by_version_2(group, quota) or _by_version_1(name, quota)
        if found is None:
            raise Trouble(
                "a share of a CPU was asked for and can't be kept here: that takes root and the "
                "kernel's control groups with the cpu controller; run as root, or ask for whole "
                "CPUs"
            )
        return found

    def entries(self) -> list[Path]:
        """Give the files that a process writes "0" into so that the limit holds for it.

        None where being in the stack's control group is enough.
        """
        return [self.folder / "cgroup.procs"] if self.means == "cgroup-v1" else []


def cpu_time_can_be_limited() -> bool:
    """Whether this machine has the means, and we may use them."""
    if os.geteuid() != 0:
        return False
    mount = mount_point()
    with suppress(OSError):
        if mount is not None and "cpu" in (mount / "cgroup.controllers").read_text().split():
            return True
    tried = _by_version_1(f"trial-{os.getpid()}", _Quota.of(1.0))
    if tried is not None:
        tried.folder.rmdir()
    return tried is not None


def _by_version_2(group: ControlGroup | None, quota: _Quota) -> CpuLimit | None:
    mount = mount_point()
    if group is None or mount is None:
        return None
    try:
        if "cpu" not in (mount / "cgroup.controllers").read_text().split():
            return None
        (mount / "cgroup.subtree_control").write_text("+cpu")
        (group.path / "cpu.max").write_text(f"{quota.time_us} {quota.period_us}")
    except OSError:
        return None
    return CpuLimit(group.path, "cgroup-v2")


def _by_version_1(name: str, quota: _Quota) -> CpuLimit | None:
    if os.geteuid() != 0:
        return None
    for mount in _version_1_mounts():
        folder = mount / f"webdyno-{name}"
        try:
            folder.mkdir()
            (folder / "cpu.cfs_period_us").write_text(str(quota.period_us))
            (folder / "cpu.cfs_quota_us").write_text(str(quota.time_us))
        except OSError:
            with suppress(OSError):
                folder.rmdir()
            return None
        return CpuLimit(folder, "cgroup-v1")
    return None


def _version_1_mounts() -> Iterator[Path]:
    return (Path(it.path) for it in mounts() if it.kind == "cgroup" and "cpu" in it.options)
