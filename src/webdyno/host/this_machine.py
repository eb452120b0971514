"""The testbed that every run here uses: this machine, its CPUs split, its processes pinned."""

import copy
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Protocol, Self, Unpack

from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import duration, last_lines
from webdyno.core.testbed import CpuSplit, Machine
from webdyno.host.control_group import ControlGroup, CpuLimit
from webdyno.host.machine import (
    allowed_cpus,
    describe_machine,
    kept_awake,
    physical_cores,
    split_cpus,
)
from webdyno.host.server_process import Circumstances, ServerProcess
from webdyno.host.users import ServerUser, server_user
from webdyno.host.workspace import Workspace

BUILD_WITHIN_S = 3600.0
KEPT_FOR_S = 30 * 86_400
"""How long a build is kept that nobody requests."""
DONE = "built"
"""The file that says that a build is complete."""
MOST_LOG_BYTES = 64 * 2**20
SHOWN_LINES = 25


class ServerNamespace(Protocol):
    """Where servers are, if not where the client is: a network namespace."""

    def entry(self, user: ServerUser | None = None) -> list[str]:
        """Return the words before a command that let it run there, as a user."""

    def socket(self) -> socket.socket:
        """Make a TCP socket whose connections begin or end there."""


class Testbed:
    """A place to run servers on: this machine, client and servers on its loopback interface."""

    host = "127.0.0.1"
    """Where the client finds the servers."""
    link_bytes_per_s: float | None = None
    """What the link between client and servers carries each way; None where it has no limit."""
    network_pids: tuple[int | str, int | str] = ("self", "self")
    """Processes in whose network namespaces servers and client are."""
    vouched: frozenset[str] = frozenset()
    """Addresses beyond it that may be loaded, such as `192.0.2.1:8080`: who calls vouches for
    them."""

    def __init__(self, server_cores: int | None = None, *, keep_awake: bool = False) -> None:
        """`server_cores` unless by the usual rule; `keep_awake` once it is entered."""
        self.split = split_cpus(allowed_cpus(), physical_cores(), server_cores)
        self.servers_cpu_time: float | None = None
        """How much of their CPUs' time servers get, in CPUs; None: all of it."""
        self._place: ServerNamespace | None = None
        self._keep_awake = keep_awake
        self._awake: str | None = None
        self._exits = ExitStack()
        self.user: ServerUser | None = server_user()
        """Whom servers run as; None when that is ourselves."""

    def on_host(self, address: str, split: CpuSplit) -> "Testbed":
        """Return the testbed of a host of a cluster, which only serves or only makes load there."""
        return self._with(host=address, split=split)

    def vouching_for(self, addresses: frozenset[str]) -> "Testbed":
        """Return a testbed whose client may load these addresses as well."""
        return self._with(vouched=addresses)

    @property
    def has_own_network(self) -> bool:
        """Whether servers are in a network that other accounts of this machine don't reach."""
        return self._place is not None

    def describe(self) -> Machine:
        """What can change a result and isn't part of the experiment."""
        return describe_machine(self.split).replace(awake=self._awake)

    def cpu_limit(self, workspace: Workspace, group: ControlGroup | None) -> CpuLimit | None:
        """Limit the CPU time of a stack whose servers get a share, or raise OperationError."""
        if self.servers_cpu_time is None:
            return None
        return CpuLimit.impose(workspace.name, group, self.servers_cpu_time)

    def with_server_cpus(self, count: float | None) -> "Testbed":
        """Return a testbed whose servers have fewer CPUs or a share of one; None: all."""
        if count is None:
            return self
        if count > len(self.split.servers):
            raise UserError(
                f"{count:g} CPUs were requested; the servers' share of this machine is "
                f"{len(self.split.servers)}"
            )
        servers = self.split.servers[: ceil(count)]
        share = None if count == len(servers) else count
        return self._with(split=self.split.replace(servers=servers), servers_cpu_time=share)

    def with_user(self, user: ServerUser | None) -> "Testbed":
        """Return a testbed whose servers run as another user; None is ourselves."""
        return self._with(user=user)

    def inside(self, place: ServerNamespace) -> "Testbed":
        """Return a testbed whose servers are in a place of their own."""
        return self._with(_place=place)

    def _with(self, **changes: object) -> "Testbed":
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def servers_entry(self, user: ServerUser | None = None) -> list[str]:
        """Words that let a command run where the servers are; if there are any, as `user`."""
        return self._place.entry(user) if self._place else []

    def client_entry(self) -> list[str]:
        """Return the words before a command that let it run where the client is."""
        return []

    def servers_socket(self) -> socket.socket:
        return self._place.socket() if self._place else socket.socket()

    def client_socket(self) -> socket.socket:
        return socket.socket()

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cpus: Sequence[int] | None = None,
        **circumstances: Unpack[Circumstances],
    ) -> ServerProcess:
        """Start a server on the servers' CPUs, as the servers' user, under a warden's eye."""
        return ServerProcess(
            argv,
            cpus=self.split.servers if cpus is None else cpus,
            user=self.user,
            warden_cpus=self.split.rest,
            entry=self.servers_entry(),
            **circumstances,
        )

    def run(
        self,
        argv: Sequence[str],
        *,
        within_s: float,
        cpus: Sequence[int] | None = None,
        **circumstances: Unpack[Circumstances],
    ) -> int | None:
        """Run a command to its end, so that nothing of it outlives us, and return its exit code.

        None when it took longer than `within_s`, and was stopped.
        """
        process = self.spawn(argv, cpus=cpus, **circumstances)
        try:
            return process.wait(within_s)
        finally:
            process.stop()

    def __enter__(self) -> Self:
        """Set up what there is next to servers and client; raise OperationError if it fails."""
        if self._keep_awake:
            self._awake = self._exits.enter_context(kept_awake(self.split.client))
        return self

    def __exit__(self, *_: object) -> None:
        """Take it down again."""
        self._exits.close()


@dataclass(frozen=True)
class BuildEnd:
    """How a command of a build ended."""

    code: int | None
    """None where it had no end in time."""
    said: str

    def failure(self, name: str, command: str, log: Path) -> OperationError:
        """Make the message of a build that failed; `log` has all that it said."""
        how = f"exit code {self.code}"
        if self.code is None:
            how = f"no end within {duration(BUILD_WITHIN_S)}"
        end = last_lines(self.said, SHOWN_LINES)
        return OperationError(
            f"the build of {name} failed with {how}: {command}\nthe end of its log ({log}):\n{end}"
        )


def run_build(
    words: Sequence[str], testbed: Testbed, *, folder: Path, environment: Mapping[str, str]
) -> BuildEnd:
    """Run a command of a build on all CPUs, so that nothing of it outlives webdyno."""
    with Workspace() as workspace:
        log = workspace.path / "build.log"
        code = testbed.run(
            words,
            cwd=folder,
            env=environment,
            log=log,
            workspace=workspace,
            within_s=BUILD_WITHIN_S,
            cpus=sorted(allowed_cpus()),
        )
        with log.open("rb") as file:
            return BuildEnd(code, file.read(MOST_LOG_BYTES).decode("utf-8", "replace"))
