"""Control groups of the kernel: they count and end whole trees of processes, orphans included."""

import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

logger = logging.getLogger(__name__)

END_WITHIN_S = 5.0


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
        """Give the file that a process writes "0" into in order to join a service's subgroup."""
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
    """Give the folders of a stack's groups, of all kinds that are mounted; they needn't be there.

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


class Mount(NamedTuple):
    """A mounted file system."""

    path: str
    kind: str
    options: list[str]


def mounts() -> list[Mount]:
    """What is mounted for this process."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return []
    fields = (line.split() for line in lines)
    return [Mount(path, kind, options.split(",")) for _, path, kind, options, *_ in fields]


def mount_point() -> Path | None:
    return next((Path(mount.path) for mount in mounts() if mount.kind == "cgroup2"), None)
