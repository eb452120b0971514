"""Control groups of the kernel, which count, limit and end whole trees of processes."""

import logging
import os
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, Self

from webdyno.core.errors import OperationError
from webdyno.core.kernel import mounts
from webdyno.core.readings import MemoryLimitUse

logger = logging.getLogger(__name__)

END_WITHIN_S = 5.0
PERIOD_US = 5_000
"""Period of a quota. It is short because a process that has used up its share stalls until
the next one, which should be shorter than anything that is measured."""
LEAST_QUOTA_US = 1_000
"""The kernel takes no smaller one (`min_cfs_quota_period` in kernel/sched/core.c)."""
OF_SWAP = {"memory.swap.max", "memory.memsw.limit_in_bytes"}
"""Files that are missing where there is no swap, or swap isn't accounted for."""
Settings = Mapping[str, str]
"""What is written into the files of a group."""


class CpuTimes(NamedTuple):
    """CPU time used since the start, in seconds."""

    user_s: float
    sys_s: float


class ControlGroup:
    """A version 2 group for one stack, with a subgroup for each of its services.

    The counters of a group include its subgroups, and processes that have ended.
    """

    def __init__(self, path: Path) -> None:
        """Take a group that is there; see `create` and `existing`."""
        self.path = path

    @classmethod
    def create(cls, name: str) -> "ControlGroup | None":
        """Make a group; None where the kernel or our rights don't allow it."""
        mount = mount_point()
        if mount is None or os.geteuid() != 0:
            return None
        path = mount / f"webdyno-{name}"
        try:
            path.mkdir()
            group = cls(path)
            group.cpu()
        except OSError as error:
            logger.debug("no control group can be made: %s", error)
            return None
        logger.debug("made control group %s", path)
        return group

    @classmethod
    def existing(cls, name: str) -> "ControlGroup | None":
        """Find a group that an earlier webdyno made."""
        mount = mount_point()
        path = mount / f"webdyno-{name}" if mount else None
        return cls(path) if path and path.is_dir() else None

    @classmethod
    def possible(cls) -> bool:
        """Whether groups can be made here."""
        group = cls.create(f"trial-{os.getpid()}")
        if group is None:
            return False
        group.end()
        return True

    def entry(self, service: str) -> Path:
        """Return the file that a process writes "0" into in order to join a service's subgroup."""
        folder = self.path / service
        folder.mkdir(exist_ok=True)
        return folder / "cgroup.procs"

    def cpu(self) -> CpuTimes:
        """CPU time of everything that ever ran in the group."""
        stat = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return CpuTimes(int(stat["user_usec"]) / 1e6, int(stat["system_usec"]) / 1e6)

    def end(self) -> None:
        """Kill what is left in the group, then remove it; safe to call twice."""
        logger.debug("ends control group %s", self.path)
        deadline = time.monotonic() + END_WITHIN_S
        while self.path.is_dir() and time.monotonic() < deadline:
            with suppress(OSError):
                (self.path / "cgroup.kill").write_text("1")
            remove_groups(self.path)
            if self.path.is_dir():
                time.sleep(0.005)


def trees(name: str) -> list[Path]:
    """Return the folders of a stack's groups, of all kinds that are mounted; they needn't be there.

    Containers make some of their own below them, in each kind of version 1.
    """
    places = dict.fromkeys(mount.path for mount in mounts() if mount.kind in {"cgroup", "cgroup2"})
    return [Path(place) / f"webdyno-{name}" for place in places]


def forget_groups(name: str) -> None:
    """Remove the groups of a stack whose processes have ended, or are just ending."""
    deadline = time.monotonic() + END_WITHIN_S
    for tree in trees(name):
        while not remove_groups(tree) and time.monotonic() < deadline:
            time.sleep(0.005)


def remove_groups(folder: Path) -> bool:
    """Remove a group with those in it; False where the kernel refuses since somebody is in it."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(path).rmdir()
    return not folder.exists()


def mount_point() -> Path | None:
    return next((Path(mount.path) for mount in mounts() if mount.kind == "cgroup2"), None)


@dataclass(frozen=True)
class GroupLimit:
    """A group whose processes together get so much: of version 2 where that has the controller."""

    folder: Path
    means: Literal["cgroup-v2", "cgroup-v1"]
    """What keeps it."""

    def entries(self) -> list[Path]:
        """Files for a process to write "0" into; none where the stack's group is enough."""
        return [self.folder / "cgroup.procs"] if self.means == "cgroup-v1" else []

    @classmethod
    def _by_version_2(
        cls, group: ControlGroup | None, controller: str, settings: Settings
    ) -> Self | None:
        mount = mount_point()
        if group is None or mount is None:
            return None
        try:
            if not _has(mount, controller):
                return None
            (mount / "cgroup.subtree_control").write_text(f"+{controller}")
            _write(group.path, settings)
        except OSError:
            return None
        return cls(group.path, "cgroup-v2")

    @classmethod
    def _by_version_1(cls, name: str, controller: str, settings: Settings) -> Self | None:
        kinds = (
            mount for mount in mounts() if mount.kind == "cgroup" and controller in mount.options
        )
        if (mount := next(kinds, None)) is None or os.geteuid() != 0:
            return None
        folder = Path(mount.path) / f"webdyno-{name}"
        try:
            folder.mkdir()
            _write(folder, settings)
        except OSError:
            with suppress(OSError):
                folder.rmdir()
            return None
        return cls(folder, "cgroup-v1")


def _refuse(what: str, controller: str, instead: str) -> NoReturn:
    raise OperationError(
        f"{what} was requested and can't be kept here: that takes root and the kernel's control "
        f"groups with the {controller} controller; run as root, or {instead}"
    )


def _has(mount: Path, controller: str) -> bool:
    return controller in (mount / "cgroup.controllers").read_text().split()


def _write(folder: Path, settings: Settings) -> None:
    for file, text in settings.items():
        with suppress(OSError) if file in OF_SWAP else nullcontext():
            (folder / file).write_text(text)


class CpuLimit(GroupLimit):
    """A limit on the CPU time of a group of processes."""

    @classmethod
    def impose(cls, name: str, group: ControlGroup | None, cpus: float) -> "CpuLimit":
        """Limit a group to so many CPUs' time; raise OperationError where this machine can't."""
        period_us = max(PERIOD_US, ceil(LEAST_QUOTA_US / cpus))  # the shortest that takes the quota
        quota_us = round(cpus * period_us)
        by_2 = {"cpu.max": f"{quota_us} {period_us}"}
        by_1 = {"cpu.cfs_period_us": f"{period_us}", "cpu.cfs_quota_us": f"{quota_us}"}
        limit = cls._by_version_2(group, "cpu", by_2) or cls._by_version_1(name, "cpu", by_1)
        return limit or _refuse("a share of a CPU", "cpu", "ask for whole CPUs")

    @classmethod
    def possible(cls) -> bool:
        """Whether this machine has the means, and we may use them."""
        if os.geteuid() != 0:
            return False
        mount = mount_point()
        with suppress(OSError):
            if mount is not None and _has(mount, "cpu"):
                return True
        quota = {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{PERIOD_US}"}
        tried = cls._by_version_1(f"trial-{os.getpid()}", "cpu", quota)
        if tried is not None:
            tried.folder.rmdir()
        return tried is not None


class MemoryReading(NamedTuple):
    """The state of a limit at a moment; counts are since the servers' start."""

    limit_bytes: int
    peak_bytes: int
    oom_kills: int
    """Processes that the kernel killed because the limit was reached."""
    reclaims: int
    """How often the limit was hit and memory had to be taken back."""

    def since(self, earlier: "MemoryReading") -> MemoryLimitUse:
        return MemoryLimitUse(
            limit_bytes=self.limit_bytes,
            peak_bytes=self.peak_bytes,
            oom_kills=self.oom_kills - earlier.oom_kills,
            reclaims=self.reclaims - earlier.reclaims,
        )


class MemoryLimit(GroupLimit):
    """A limit on the memory of all services of a stack together, page cache included."""

    @classmethod
    def impose(cls, name: str, group: ControlGroup | None, limit_bytes: int) -> "MemoryLimit":
        """Limit the group of a stack; raise OperationError where this machine can't."""
        by_2 = {"memory.max": f"{limit_bytes}", "memory.swap.max": "0"}
        by_1 = dict.fromkeys(
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), f"{limit_bytes}"
        )
        limit = cls._by_version_2(group, "memory", by_2) or cls._by_version_1(name, "memory", by_1)
        return limit or _refuse("a memory limit", "memory", "exclude the limit")

    def reading(self) -> MemoryReading:
        """Read the limit's counters; raise OSError when the group is gone."""
        if self.means == "cgroup-v2":
            events = _table(self.folder / "memory.events")
            peak = self.folder / "memory.peak"  # since Linux 5.19
            return MemoryReading(
                limit_bytes=_number(self.folder / "memory.max"),
                peak_bytes=_number(peak if peak.exists() else self.folder / "memory.current"),
                oom_kills=events["oom_kill"],
                reclaims=events["max"],
            )
        return MemoryReading(
            limit_bytes=_number(self.folder / "memory.limit_in_bytes"),
            peak_bytes=_number(self.folder / "memory.max_usage_in_bytes"),
            oom_kills=_table(self.folder / "memory.oom_control").get("oom_kill", 0),
            reclaims=_number(self.folder / "memory.failcnt"),
        )


def _number(path: Path) -> int:
    return int(path.read_text())


def _table(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {key: int(value) for key, value in pairs}
