"""Servers that a daemon runs for their start command, as Docker's runs containers.

Their processes are no descendants of ours. The start command lists them in a file once they are up,
the one that clients ask last; the daemon has put each into a control group of its own. As they may
be root's where we aren't, they are known by what everybody may read of them.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from webdyno.core.kernel import kernel_lines
from webdyno.host.control_group import mount_point
from webdyno.host.listening import Listens, listening_at
from webdyno.host.server_process import ServerProcess, pids_below

RESOLVER = "127.0.0.11:"
"""Docker's name server listens there, in the network of each container."""


class ContainedProcess:
    """A server that a daemon runs, with what a `ServerProcess` has, which is its start command."""

    def __init__(self, command: ServerProcess, list_: Path) -> None:
        """`list_` is the file that the command writes: a line with a process id for each."""
        self._command = command
        self._list = list_
        self._roots: list[int] = []
        self._groups: list[Path] = []

    @property
    def left_running(self) -> int:
        return self._command.left_running

    def roots(self) -> list[int]:
        """The first process of each container; none before they are up."""
        if not self._roots:
            with suppress(FileNotFoundError):
                self._roots = [int(line) for line in self._list.read_text().split()]
        return self._roots

    def groups(self) -> list[Path]:
        """The control group of each container; none where one can't be read."""
        if not self._groups:
            groups = [_group_of(pid) for pid in self.roots()]
            self._groups = [group for group in groups if group] if all(groups) else []
        return self._groups

    def pids(self) -> list[int]:
        """Processes of the containers that live now."""
        if groups := self.groups():
            with suppress(OSError):
                files = [file for group in groups for file in group.rglob("cgroup.procs")]
                return [int(pid) for file in files for pid in file.read_text().split()]
        return [pid for root in self.roots() for pid in (root, *pids_below(root))]

    @property
    def network_pid(self) -> int | None:
        """A process in the network of the container that is asked; None before that is up."""
        return self.roots()[-1] if self.roots() else None

    def listeners(self, *, is_udp: bool = False) -> Sequence[str]:
        """Return the addresses at which that container is listened at, by whomever in it."""
        if self.network_pid is None:
            return []
        addresses = listening_at(self.network_pid, is_udp=is_udp)
        return [address for address in addresses if not address.startswith(RESOLVER)]

    def listens(self, place: Listens) -> bool:
        """Whether anybody listens on the port there: nobody else can."""
        listeners = self.listeners(is_udp=place.is_udp)
        return any(address.endswith(f":{place.port}") for address in listeners)

    def poll(self) -> int | None:
        return self._command.poll()

    def ask_to_stop(self) -> None:
        self._command.ask_to_stop()

    def stop(self) -> None:
        self._command.stop()


def _group_of(pid: int) -> Path | None:
    """Return a process's control group of version 2; None without one of its own."""
    mount = mount_point()
    with suppress(OSError):
        for line in kernel_lines(Path(f"/proc/{pid}/cgroup")):
            path = line.removeprefix("0::/")
            if mount and path and path != line and (mount / path / "cpu.stat").is_file():
                return mount / path
    return None
