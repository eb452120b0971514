"""The agent (`measure.local_backend`) on a host of a cluster that serves, or makes load.

It is given the experiment with its part of the catalogue; from then on orders name points and
variants of it. It has a process of its own: what carries its orders has threads, timers, signal
handlers and a niceness, which are not to be in a process that starts servers and reads counters.
Orders and replies go through a pipe. When the other side ends in any way, its end of the pipe
closes, at which the agent leaves nothing behind and ends.

Between hosts go heartbeats while load goes on. A host with load generators sends a byte to that of
the servers and waits for it to come back, ten times a second, on a connection of its own. It times
itself: how long no byte came back distinguishes a cut network from a slow server, which answers
these bytes whatever its web server does.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from webdyno.cluster.agent import at_usual_priority, unpack_parcel
from webdyno.cluster.host import Order, RemoteAgent, Reply, carried_out
from webdyno.config import Catalogue, read_experiment
from webdyno.config.reading import TomlFile
from webdyno.core.debug_log import debug_log
from webdyno.core.errors import OperationError
from webdyno.core.experiment import Experiment
from webdyno.core.records import Response
from webdyno.core.run import CATALOGUE_FOLDER, EXPERIMENT_FILE
from webdyno.core.sweep import plan_points
from webdyno.host.children import python_module
from webdyno.host.machine import allowed_cpus, physical_cores, whole_split
from webdyno.host.netns import open_testbed
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.load.engine import find_loadgen
from webdyno.load.interface import GeneratorError, LoadOrder
from webdyno.measure.backend import LoadOutcome, Questions, StartedVariant, Surroundings
from webdyno.measure.local_backend import Agent, OpenTestbeds, surroundings_on
from webdyno.measure.planned import PlannedVariant, plan_variants, variants_of_all_points
from webdyno.servers.needs import build_program, install_packages, missing_packages, unbuilt
from webdyno.servers.service_graph import Placement

EVERY_S = 0.1
CONNECTED_WITHIN_S = 0.5


class HeartbeatServer:
    """Sends back every byte that comes, until the process ends."""

    def __init__(self, address: str) -> None:
        """Listen on an address, on a port that the kernel chooses."""
        self._server = socket.create_server((address, 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, name="heartbeat", daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=_send_back, args=(connection,), daemon=True).start()


def _send_back(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while said := connection.recv(16):
            connection.sendall(said)


class Heartbeat:
    """Waits for heartbeats of a host while it is entered; `silent_s` is there afterwards."""

    def __init__(self, address: str, port: int) -> None:
        self._where = (address, port)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.silent_s = 0.0
        """The longest time without one."""

    def __enter__(self) -> Self:
        self._heard_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._note_silence()

    def _run(self) -> None:
        while not self._end.is_set():
            with (
                suppress(OSError),
                socket.create_connection(self._where, CONNECTED_WITHIN_S) as connection,
            ):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(EVERY_S)
                self._ask(connection)
            self._end.wait(EVERY_S)

    def _ask(self, connection: socket.socket) -> None:
        """A byte that is late is waited for, as the kernel sends it again."""
        while not self._end.is_set():
            connection.sendall(b".")
            while not self._end.is_set():
                with suppress(TimeoutError):
                    if not connection.recv(1):
                        return
                    self._note_silence()
                    self._heard_s = time.monotonic()
                    break
            self._end.wait(EVERY_S)

    def _note_silence(self) -> None:
        self.silent_s = max(self.silent_s, time.monotonic() - self._heard_s)


class RoleAgent(Agent, RemoteAgent):
    """Acts on this host for a webdyno elsewhere, for one run."""

    def __init__(self, parcel: bytes, address: str, peers: Collection[str], *, yes: bool) -> None:
        """`address`: this host's; `peers`: may be loaded; `yes`: installs what is missing."""
        super().__init__([], {})
        self._address, self._peers, self._yes = address, frozenset(peers), yes
        self._split = whole_split(allowed_cpus(), physical_cores())
        self._exits = ExitStack()
        # Should we be killed, whoever makes the next one removes it.
        self._place = self._exits.enter_context(Workspace()).make_kept()
        unpack_parcel(parcel, self._place)
        self._logs = self._place / "logs"
        self._open = OpenTestbeds(self._exits, self._as_host)
        self._heartbeat: tuple[str, int] | None = None

    @cached_property
    def _catalogue(self) -> Catalogue:
        return Catalogue.load([self._place / CATALOGUE_FOLDER])

    @cached_property
    def _experiment(self) -> Experiment:
        return read_experiment(TomlFile(self._place / EXPERIMENT_FILE), [], self._catalogue)

    def _as_host(self, testbed: Testbed) -> Testbed:
        return testbed.on_host(self._address, self._split)

    def look(self) -> Surroundings:
        if (nice := os.getpriority(os.PRIO_PROCESS, 0)) > 0:
            raise OperationError(
                f"what Ray starts has a niceness of {nice}, and servers would have it as well: "
                "start its node with RAY_worker_niceness=0 in its environment"
            )
        variants = variants_of_all_points(self._experiment, self._catalogue)
        self._provide(variants)
        with open_testbed(self._experiment.testbed, find_loadgen()) as testbed:
            return surroundings_on(self._as_host(testbed), self._experiment, variants)

    def _provide(self, variants: Sequence[PlannedVariant]) -> None:
        stacks = [variant.stack for variant in variants]
        lacking = missing_packages(stacks, [variant.site for variant in variants])
        to_build = unbuilt(stacks)
        if not self._yes and (lacking or to_build):
            wanted = [*lacking, *(f"the build of {service.title}" for service in to_build)]
            raise OperationError(f"it lacks {', '.join(wanted)}; --yes provides that there")
        install_packages(lacking, lambda _: True)
        for service in to_build:
            build_program(service, lambda _: None)

    def answer_heartbeats(self) -> tuple[str, int]:
        return self._address, HeartbeatServer(self._address).port

    def expect_heartbeats(self, address: str, port: int) -> None:
        self._heartbeat = address, port

    def at_point(self, number: int) -> None:
        plan = next(
            planned for planned in plan_points(self._experiment) if planned.point.number == number
        )
        variants = plan_variants(plan.experiment, self._catalogue)
        self.work_for(variants, self._open.of_variants(plan.experiment))

    def start(
        self, variant: str, folder: Path, placement: Placement | None = None
    ) -> StartedVariant:
        return super().start(variant, self._logs / folder, placement)

    def ask(self, variant: str, url: str, questions: Questions) -> list[Response]:
        self._refuse_others(url)
        return super().ask(variant, url, questions)

    def log_in(self, variant: str, order: LoadOrder) -> None:
        self._refuse_others(order.url)
        super().log_in(variant, order)

    def load(self, variant: str, order: LoadOrder) -> LoadOutcome:
        """Wait for heartbeats of the servers' host meanwhile."""
        self._refuse_others(order.url)
        if self._heartbeat is None:
            return super().load(variant, order)
        with Heartbeat(*self._heartbeat) as heartbeat:
            loaded = super().load(variant, order)
        use = loaded.use and loaded.use._replace(silent_s=heartbeat.silent_s)
        return loaded._replace(use=use)

    def _refuse_others(self, url: str) -> None:
        if urlsplit(url).hostname not in self._peers:
            raise GeneratorError(f"{url} is no host of this cluster, so it isn't loaded")

    def files(self, folder: Path) -> Mapping[str, bytes]:
        there = self._logs / folder
        return {
            str(path.relative_to(there)): path.read_bytes()
            for path in sorted(there.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def close(self) -> None:
        self.end()
        self._exits.close()


class AgentProcess:
    """An agent in a process of its own, and the way to it."""

    def __init__(self, parcel: bytes, address: str, peers: Collection[str], *, yes: bool) -> None:
        """Start it; for what it is given see `RoleAgent`."""
        self._agent, its_end = Pipe()
        with its_end:
            self._process = subprocess.Popen(
                [*python_module("webdyno.cluster.role_agent"), str(its_end.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[its_end.fileno()],
                start_new_session=True,
            )
        self._agent.send((parcel, address, list(peers), yes))

    def do(self, order: Order) -> Reply:
        """Send it an order, and return what came of it."""
        try:
            self._agent.send(order)
            reply: Reply = self._agent.recv()
        except (ConnectionError, EOFError):
            return Reply(refusal=OperationError("the agent's process ended unexpectedly"))
        return reply


def main() -> None:
    """Be the agent until the other side is gone."""
    caller: Connection[Reply, Any] = Connection(int(sys.argv[1]))
    at_usual_priority()
    with debug_log(["agent"]):
        parcel, address, peers, yes = caller.recv()
        agent = RoleAgent(parcel, address, peers, yes=yes)
        with suppress(EOFError, ConnectionError):
            while True:
                caller.send(carried_out(caller.recv(), agent))
        agent.close()


if __name__ == "__main__":
    main()
