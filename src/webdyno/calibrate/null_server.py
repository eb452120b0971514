"""The null server on a bench: started like any other server, and as surely ended."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from webdyno.generator import Expectation, LoadOrder, SentRequest, find_loadgen
from webdyno.host import Bench, ServerProcess
from webdyno.host.users import uid_of
from webdyno.model.load import Load
from webdyno.model.mistake import Trouble
from webdyno.stack.commands import PLAIN_ENVIRONMENT
from webdyno.stack.ready import Address, wait_for_listener
from webdyno.stack.sockets import free_port

PROGRAM = "null-server"


@dataclass(frozen=True)
class NullServer:
    """A running null server."""

    process: ServerProcess
    url: str
    body_bytes: int

    def order(self, load: Load, duration_s: float) -> LoadOrder:
        """Make an order that loads it."""
        request = SentRequest(self.url, Expectation(200, self.body_bytes))
        return LoadOrder("calibrate", (request,), load, duration_s)


@contextmanager
def null_server(bench: Bench, body_bytes: int) -> Iterator[NullServer]:
    """Run a null server on the servers' CPUs; raise Trouble when it doesn't start."""
    workspace = bench.workspace()
    process: ServerProcess | None = None
    try:
        # The servers' user may not get to where the engine is installed.
        program = shutil.copy(find_loadgen(), workspace.path / "loadgen")
        port = free_port(bench.servers_socket)
        process = bench.spawn(
            [
                *(str(program), PROGRAM, f"--listen={bench.host}:{port}", f"--body={body_bytes}"),
                *(f"--cpus={','.join(map(str, bench.split.servers))}", "--allow-remote"),
            ],
            cwd=workspace.path,
            env=PLAIN_ENVIRONMENT,
            log=workspace.path / "log",
            workspace=workspace,
        )
        _wait(process, Address(bench.host, port, None, uid_of(bench.user)), bench)
        yield NullServer(process, f"http://{bench.host}:{port}/", body_bytes)
    finally:
        if process is not None:
            process.stop()
        workspace.remove()


def _wait(process: ServerProcess, address: Address, bench: Bench) -> None:
    def check_alive() -> None:
        if process.poll() is not None:
            raise Trouble(f"the null server ended: {process.log.read_text().strip()}")

    def is_own() -> bool:
        return process.listens(address.port, address.socket)

    if not wait_for_listener(address, check_alive, is_own, bench.client_socket):
        raise Trouble("the null server has not accepted connections in time")
