"""A memory limit for a whole stack, kept by the kernel's control groups."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from webdyno.host.control_group import ControlGroup, mount_point, mounts
from webdyno.model.mistake import Trouble
from webdyno.model.readings import MemoryLimitUse


class MemoryReading(NamedTuple):
    """The state of a limit at a moment; counts are since the servers' start."""

    limit_bytes: int
    peak_bytes: int
    oom_kills: int
    """Processes that the kernel killed because the limit was reached."""
    reclaims: int
    """How often the limit was hit and memory had to be taken back."""

    def since(self, earlier: "MemoryReading") -> MemoryLimitUse:
        """Give what happened between an earlier reading and this one."""
        return MemoryLimitUse(
            limit_bytes=self.limit_bytes,
            peak_bytes=self.peak_bytes,
            oom_kills=self.oom_kills - earlier.oom_kills,
            reclaims=self.reclaims - earlier.reclaims,
        )


class MemoryLimit:
    """A limit on the memory of all services of a stack together, page cache included.

    Version 2 of the kernel's control groups keeps it where that has the memory controller, else
    version 1.
    """

    def __init__(self, folder: Path, means: Literal["cgroup-v2", "cgroup-v1"]) -> None:
        """Take a group that has a limit; see `impose`. It goes with the stack's other groups."""
        self._folder = folder
        self.means = means
        """What keeps the limit."""

    @classmethod
    def impose(cls, name: str, group: ControlGroup | None, limit_bytes: int) -> "MemoryLimit":
        """Limit the group of a stack; raise Trouble where this machine has no means to do it."""
        return _by_version_2(group, limit_bytes) or _by_version_1(name, limit_bytes) or _refuse()

    def entries(self) -> list[Path]:
        """Give the files that a process writes "0" into so that the limit holds for it.

        None where being in the stack's control group is enough.
        """
        return [self._folder / "cgroup.procs"] if self.means == "cgroup-v1" else []

    def reading(self) -> MemoryReading:
        """Read the limit's counters; raise OSError when the group is gone."""
        if self.means == "cgroup-v2":
            events = _table(self._folder / "memory.events")
            peak = self._folder / "memory.peak"  # since Linux 5.19
            return MemoryReading(
                limit_bytes=_number(self._folder / "memory.max"),
                peak_bytes=_number(peak if peak.exists() else self._folder / "memory.current"),
                oom_kills=events["oom_kill"],
                reclaims=events["max"],
            )
        return MemoryReading(
            limit_bytes=_number(self._folder / "memory.limit_in_bytes"),
            peak_bytes=_number(self._folder / "memory.max_usage_in_bytes"),
            oom_kills=_table(self._folder / "memory.oom_control").get("oom_kill", 0),
            reclaims=_number(self._folder / "memory.failcnt"),
        )


def _by_version_2(group: ControlGroup | None, limit_bytes: int) -> MemoryLimit | None:
    mount = mount_point()
    if group is None or mount is None:
        return None
    try:
        if "memory" not in (mount / "cgroup.controllers").read_text().split():
            return None
        (mount / "cgroup.subtree_control").write_text("+memory")
        (group.path / "memory.max").write_text(str(limit_bytes))
        with suppress(OSError):  # where there is no swap
            (group.path / "memory.swap.max").write_text("0")
    except OSError:
        return None
    return MemoryLimit(group.path, "cgroup-v2")


def _by_version_1(name: str, limit_bytes: int) -> MemoryLimit | None:
    for mount in _version_1_mounts():
        folder = mount / f"webdyno-{name}"
        try:
            folder.mkdir()
            (folder / "memory.limit_in_bytes").write_text(str(limit_bytes))
            with suppress(OSError):  # where swap isn't accounted for
                (folder / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes))
        except OSError:
            with suppress(OSError):
                folder.rmdir()
            return None
        return MemoryLimit(folder, "cgroup-v1")
    return None


def _refuse() -> MemoryLimit:
    raise Trouble(
        "a memory limit was asked for and can't be kept here: that takes root and the kernel's "
        "control groups with the memory controller; run as root, or leave out the limit"
    )


def _version_1_mounts() -> Iterator[Path]:
    return (Path(m.path) for m in mounts() if m.kind == "cgroup" and "memory" in m.options)


def _number(path: Path) -> int:
    return int(path.read_text())


def _table(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {key: int(value) for key, value in pairs}
