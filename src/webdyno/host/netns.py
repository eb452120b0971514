"""The bench with a network of its own: client and servers in namespaces, a cable between them."""

import shutil
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Self

from webdyno.host.netns_network import PROGRAM_FOLDERS, SERVERS, Sides, lay_cable
from webdyno.host.this_machine import Bench
from webdyno.host.users import ServerUser
from webdyno.model.bench import BenchSettings
from webdyno.model.machine import Machine
from webdyno.model.mistake import Trouble

PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}
"""What sets the network up, and the Debian packages that hold it."""
CONGESTION_CONTROL = "ipv4/tcp_congestion_control"
INHERITED = (
    "core/somaxconn",
    "ipv4/ip_local_port_range",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_tw_reuse",
    CONGESTION_CONTROL,
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
)
"""Kernel parameters in /proc/sys/net that a new namespace doesn't take over by itself."""
STEADY = {"ipv4/tcp_slow_start_after_idle": "0"}
"""An arm is idle while others have their slots. Under the steady load that slots stand for it
wouldn't be, so TCP must not begin each of them anew."""


class NetnsBench(Bench):
    """The machine, with client and servers in network namespaces of their own.

    The network is there between `__enter__` and `__exit__`, and gone however webdyno ends.
    """

    host = SERVERS

    def __init__(self, settings: BenchSettings, engine: Path) -> None:
        """`engine` is the program of the load engine, which also holds the relay."""
        super().__init__(settings.server_cores)
        self.link_bytes_per_s = settings.link_bytes_per_s
        self._settings = settings
        self._engine = engine
        self._sides: Sides | None = None
        self._means = ""

    def __enter__(self) -> Self:
        """Make the network; raise Trouble where this machine or user can't."""
        for program, package in PROGRAMS.items():
            if shutil.which(program, path=PROGRAM_FOLDERS) is None:
                raise Trouble(
                    f"--bench netns needs the program {program}; on Debian and Ubuntu: "
                    f"apt-get install {package}"
                )
        self._sides = Sides(self.split.rest)
        try:
            self._means = lay_cable(self._sides, self._settings, self._engine)
            self._set_kernel_parameters(self._sides)
            self.network_pids = (self._sides.servers.pid, self._sides.client.pid)
        except BaseException:
            self._sides.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the network go."""
        if self._sides is not None:
            self._sides.close()

    def describe(self) -> Machine:
        """What can change a result and isn't part of the experiment."""
        return super().describe().replace(network=self._means)

    def servers_entry(self, user: ServerUser | None = None) -> list[str]:
        """Give the words before a command that let it run where the servers are."""
        return self._up.servers.entry(user)

    def client_entry(self) -> list[str]:
        """Give the words before a command that let it run where the client is."""
        return self._up.client.entry()

    def servers_socket(self) -> socket:
        """Make a TCP socket where the servers are."""
        return self._up.servers.socket()

    def client_socket(self) -> socket:
        """Make a TCP socket where the client is."""
        return self._up.client.socket()

    @property
    def _up(self) -> Sides:
        assert self._sides is not None, "the bench has not been entered"  # noqa: S101
        return self._sides

    def _set_kernel_parameters(self, sides: Sides) -> None:
        """New namespaces have the kernel's defaults: give them what runs need."""
        for name in INHERITED:
            path = Path("/proc/sys/net", name)
            if path.exists():
                _set_in_both(sides, name, path.read_text())
        for name, text in STEADY.items():
            _set_in_both(sides, name, text)
        own = Path("/proc/sys/net", CONGESTION_CONTROL).read_text().strip()
        if own == "bbr" and not self._settings.loss:
            # It paces each connection by its share so far, which leaves a full cable idle for up
            # to a tenth of a slot, at random. Namespaces may always have reno instead.
            _set_in_both(sides, CONGESTION_CONTROL, "reno")
            self._means += ", TCP reno instead of bbr"


def _set_in_both(sides: Sides, name: str, text: str) -> None:
    for side in (sides.client, sides.servers):
        side.set_kernel(f"/proc/sys/net/{name}", text)
