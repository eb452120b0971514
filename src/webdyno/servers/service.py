"""One service of a stack: its configuration and its process."""

import logging
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import write_whole
from webdyno.core.format import duration, indent
from webdyno.core.load import HttpProtocol
from webdyno.core.service import READY_WITHIN_S
from webdyno.host.contained import ContainedProcess
from webdyno.host.listening import Listens, addresses, is_among
from webdyno.host.server_process import FoundProcess, ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.host.users import name_of
from webdyno.host.workspace import Workspace
from webdyno.servers.output import (
    WITHIN_S,
    CommandError,
    hint,
    other_port_in_use,
    refusal_words,
    run_checked,
    shown_lines,
    version_of,
)
from webdyno.servers.ready import Address, wait_for_listener
from webdyno.servers.service_graph import Role
from webdyno.servers.templates import RenderedJob, without_empty

logger = logging.getLogger(__name__)

SIGNALS_FROM = 128
"""Exit codes above this stand for the signal that ended a process."""
LATE_PORT_S = 5.0
"""Some servers open a debugger's or compiler's port first, and theirs within this time."""
SET_UP_WITHIN_S = 3600.0
"""As long as a build may take: some load a large dump."""
CONTAINERS = "containers"
"""The file in which a start command lists what a daemon runs for it."""
IN_THE_BACKGROUND = (
    "went into the background: its start command ended while {left} of its processes ran on, which "
    "were stopped. `start` in {where} has to keep it in front, as nginx's `daemon off;` does"
)


class StackDied(OperationError):  # noqa: N818
    """A service didn't start, or died later."""

    def __init__(
        self, service: str, what: str, log: Path | None, other_port: int | None = None
    ) -> None:
        """Make the message from what happened and the end of the service's log, if it has one."""
        self.service = service
        """The service's role in the stack."""
        self.what = what
        """What happened, without the log."""
        self.log_tail = shown_lines(log) if log else []
        self.is_by_other_port = other_port is not None
        """Whether a port was taken that isn't the one it was asked to listen on."""
        if log is None:
            super().__init__(what)
            return
        super().__init__(f"{what}; the end of its log ({log}):\n{indent(self.log_tail)}")

    def __reduce__(self) -> tuple[object, ...]:
        """Let it come from another host, whose log isn't here."""
        return StackDied, (self.service, self.what, None), vars(self) | {"args": self.args}


@dataclass
class RunningService:
    """A service in its role; it is running between `start` and `stop`."""

    role: Role
    address: Address
    home: Path
    """Where its live files are."""
    log: Path
    filled: RenderedJob
    environment: Mapping[str, str]
    testbed: Testbed
    workspace: Workspace
    process: ServerProcess | FoundProcess | ContainedProcess | None = field(
        default=None, init=False
    )
    initialised_in_s: float = field(default=0.0, init=False)
    """So long took what came before its start."""
    _network: int | None = field(default=None, init=False)
    _started_at: float = field(default=0.0, init=False)
    """By time.monotonic()."""

    @property
    def cwd(self) -> Path:
        """Where its commands run."""
        own = self.role.service.own
        return Path(own.folder) if own and own.folder else self.home

    @property
    def is_container(self) -> bool:
        """Whether its command starts containers, with control groups that it makes for them."""
        own = self.role.service.own
        return own is not None and own.container_port is not None

    def start(
        self, groups_to_join: Sequence[Path] = (), groups_to_remove: Sequence[Path] = ()
    ) -> None:
        """Start the process; it isn't ready yet."""
        service, filled = self.role.service, self.filled
        self._started_at = time.monotonic()
        if service.runs_already:
            away = service.own is not None and service.own.elsewhere
            self.process = FoundProcess(None if away else self.address.port)
            return
        self.initialise()
        words = filled.words("start")
        if not words:
            empty = "every word of `start` came out empty, so nothing can be run"
            raise UserError(f"{service.where}: {empty}")
        removed_by = filled.words("removed_by")
        process = self.testbed.spawn(
            words,
            cwd=self.cwd,
            env=self.environment,
            log=self.log,
            workspace=self.workspace,
            groups_to_join=groups_to_join,
            groups_to_remove=groups_to_remove,
            stop_signal=service.stop_signal,
            stop_within_s=service.stop_within_s,
            afterwards=removed_by,
        )
        if removed_by:
            self.process = ContainedProcess(process, self.home / CONTAINERS)
        else:
            self.process = process

    def initialise(self) -> None:
        """Run what comes before the start; what makes data only where there is none yet."""
        service, began = self.role.service, time.monotonic()
        there = service.data is not None and any((self.home / service.data).iterdir())
        commands = [] if there else self.filled.texts["initialise"]
        for command in map(without_empty, (*commands, *self.filled.texts["before_start"])):
            if service.own:
                self._run_line("prepare", command)
            else:
                self._run(command, "can't be set up")
        self.initialised_in_s = time.monotonic() - began

    def set_up(self) -> None:
        """Run its user's `setup`, which fills the services behind it, while they run."""
        self._run_line("setup", self.filled.words("setup"), SET_UP_WITHIN_S)

    def tidy(self) -> None:
        """Do at once what it would do by and by of what a set-up left."""
        if words := self.filled.words("tidy"):
            self._run(words, "can't tidy up what setup left", SET_UP_WITHIN_S)

    def take_snapshot(self) -> None:
        """Remember what it holds, where it can."""
        if words := self.filled.words("snapshot"):
            self._run(words, "can't remember what it holds (state.reset)")

    def restore(self) -> None:
        """Put back what it held at the snapshot, while its clients stay connected."""
        if words := self.filled.words("restore"):
            self._run(words, "can't be put back to what it held (state.reset)")

    def check_configuration(self) -> None:
        """Raise OperationError, UserError of the user's own, for a refused configuration.

        It takes as long as a start, so it is asked only where a start has failed.
        """
        if not (words := self.filled.words("check")):
            return
        if self.role.service.own is None:
            self._run(words, f"refuses its configuration (kept in {self._kept()})")
            return
        try:
            self._run_command(words)
        except CommandError as error:
            program = f"{words[0]}, version {self.version()}"
            said = refusal_words(str(error), self.role.service.folder, self.home, program)
            raise UserError(
                f"{self.role.service.title} is refused by its server:\n{said}"
            ) from None

    def wait_until_it_listens(self) -> None:
        """Wait until it accepts connections; raise StackDied if that doesn't happen in time."""
        logger.debug("waits until %s listens at %s", self.role.service.title, self.address.text)
        if wait_for_listener(
            self.address,
            self.check_alive,
            self.listens,
            self.testbed.servers_socket,
            self.ready_within_s,
        ):
            self._wait_until_it_is_ready()
            return
        late = f"has not accepted connections {self.late}"
        if self.role.service.runs_already:
            late = f"doesn't accept connections at {self.address.text}: start it first"
        raise self.death(self.elsewhere() or late)

    @property
    def ready_within_s(self) -> float:
        return self.role.service.ready_within_s or READY_WITHIN_S

    @property
    def late(self) -> str:
        """How long it had to start, and how it gets longer where that is its user's business."""
        service = self.role.service
        longer = f"; where it takes longer, give --ready-within {3 * self.ready_within_s:g}s"
        return f"within {duration(self.ready_within_s)}{longer if service.own else ''}"

    def _wait_until_it_is_ready(self) -> None:
        """Wait until it says so itself, where it can; raise StackDied if it doesn't in time."""
        words, deadline = self.filled.words("ready"), time.monotonic() + self.ready_within_s
        while words:
            try:
                self._run_command(words)
            except CommandError as error:
                self.check_alive()
                if time.monotonic() > deadline:
                    raise self.death(f"isn't ready in time:\n{error}") from None
            else:
                return

    def listens(self, protocol: HttpProtocol | None = None) -> bool:
        """Whether what is asked at its address, as by a protocol, is one of its own processes."""
        asked = self.address
        host = None if self.is_container else asked.host
        is_udp = (protocol or asked.protocol) == "h3"
        place = Listens(asked.port, asked.socket, host, asked.uid, is_udp)
        return self.process is not None and self.process.listens(place)

    def check_alive(self, why: str = "") -> None:
        """Raise StackDied, with `why` in its message, when the process has ended."""
        code = self.process.poll() if self.process else None
        if code is None or self.process is None:
            return
        if code == 0 and (left := self.process.left_running) and not self.is_container:
            where = self.role.service.where
            raise self.death(IN_THE_BACKGROUND.format(left=left, where=where))
        is_signal = SIGNALS_FROM < code < SIGNALS_FROM + signal.NSIG
        how = f"signal {code - SIGNALS_FROM}" if is_signal else f"exit code {code}"
        raise self.death(f"ended by itself with {how}{why}")

    def death(self, what: str) -> StackDied:
        """Make the exception that says what happened to this service."""
        service = self.role.service
        if service.runs_already:
            return StackDied(self.role.name, f"{service.title} {what}", None)
        lines, port = shown_lines(self.log), self.address.port
        if service.own and not self.is_container:
            what = f"{what} (run in {self.cwd} as {name_of(self.testbed.user)}){hint(lines, port)}"
        other_port = other_port_in_use(lines, port)
        return StackDied(self.role.name, f"{service.title} {what}", self.log, other_port)

    def version(self) -> str:
        """Return the server's version, and those of its modules: `2.4.71, PHP 8.2.36`.

        All that it says, build flags included, is kept next to its configuration.
        """
        version, said = version_of(
            self.role.service,
            self.role.settings,
            self.filled.texts,
            self.testbed,
            self.workspace,
        )
        if said:
            write_whole(self._kept() / "version.txt", said, below=self.log.parent)
        return version

    def facts(self) -> Mapping[str, str]:
        """What the pre-flight check says of this service."""
        facts: Mapping[str, str] = self.filled.texts["facts"]
        return facts

    def pids(self) -> list[int]:
        return self.process.pids() if self.process else []

    def elsewhere(self) -> str | None:
        """Return where it listens instead of its own address; None where it doesn't."""
        listeners, own = self._listeners(), self.address
        host = None if self.is_container else own.text.rpartition(":")[0]
        if not listeners or is_among(listeners, own.port, host):
            return None
        where = " and ".join(listeners)
        if self.is_container:
            asked = f"not on port {own.port}; --env PORT=N says where it is asked"
            return f"listens on {where} and {asked}"
        return f"listens on {where} and not on {own.text}: {self._where_to_listen(listeners)}"

    def _listeners(self) -> Sequence[str]:
        """Return where it listens, in the network where it is asked."""
        pids, process = self.pids(), self.process
        if isinstance(process, ContainedProcess):
            return process.listeners()
        if self.is_container and isinstance(process, ServerProcess):  # others have other networks
            pids = [pid for pid in pids if _network(pid) == _network(process.pid)]
        return addresses(pids)

    def _where_to_listen(self, listeners: Sequence[str]) -> str:
        address = self.address
        at_port = [listener for listener in listeners if listener.endswith(f":{address.port}")]
        if self.role.service.runs_already:
            return f"give url:http://{at_port[0] if at_port else listeners[0]}"
        if address.socket:
            return "have it listen at the path $SOCKET"
        if at_port:
            return f"have it listen at $HOST, which is {address.host} (often --host $HOST)"
        return (
            "have it listen on $PORT (often --port $PORT); if it does so later than after "
            f"{LATE_PORT_S:g} s, give --ready-within"
        )

    def listens_as_well(self) -> list[str]:
        """Return the addresses next to its own where it listens, which nobody asks."""
        if self.is_container:
            return []
        own = f":{self.address.port}"
        return [address for address in addresses(self.pids()) if not address.endswith(own)]

    def is_elsewhere(self) -> bool:
        """Whether it surely listens at another address: at its port, or at another for long."""
        listeners, own = addresses(self.pids()), self.address
        if not listeners or self.is_container or own.socket:
            return False
        if is_among(listeners, own.port, own.text.rpartition(":")[0]):
            return False
        same_port = any(listener.endswith(f":{own.port}") for listener in listeners)
        return same_port or time.monotonic() - self._started_at > LATE_PORT_S

    def hold_network(self) -> None:
        """Keep the network of containers until we stop, lest requests leave this machine.

        A daemon keeps it by itself until it has to remove it.
        """
        if self.is_container and isinstance(self.process, ServerProcess):
            self._network = os.open(f"/proc/{self.process.pid}/ns/net", os.O_RDONLY)

    def ask_to_stop(self) -> None:
        if self.process is not None:
            self.process.ask_to_stop()

    def stop(self) -> None:
        """Stop the process and whatever it started; safe to call twice."""
        if self.process is not None:
            self.process.stop()
        if self._network is not None:
            os.close(self._network)
            self._network = None

    def _kept(self) -> Path:
        return self.log.parent / self.role.name

    def _run_command(self, words: list[str], within_s: float = WITHIN_S) -> None:
        run_checked(
            words,
            cwd=self.cwd,
            environment=self.environment,
            testbed=self.testbed,
            workspace=self.workspace,
            within_s=within_s,
        )

    def _run_line(self, key: str, words: list[str], within_s: float = WITHIN_S) -> None:
        """Run what its user wrote as a line of shell; raise OperationError if it fails."""
        try:
            self._run_command(words, within_s)
        except CommandError as error:
            raise OperationError(
                f"{self.role.service.title} isn't started: {key} failed with {error.how} "
                f"(in {self.cwd} as {name_of(self.testbed.user)}): {words[-1]}\n{error}"
            ) from None

    def _run(self, words: list[str], what_if_it_fails: str, within_s: float = WITHIN_S) -> None:
        try:
            self._run_command(words, within_s)
        except CommandError as error:
            title = self.role.service.title
            raise OperationError(f"{title} {what_if_it_fails}:\n{error}") from None


def _network(pid: int) -> int | None:
    """The number of a process's network namespace; None once it has ended."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return None
