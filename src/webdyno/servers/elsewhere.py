"""Where a server listens, next to where it is asked, and how to bring the two together."""

from collections.abc import Sequence
from pathlib import Path

from webdyno.host.contained import ContainedProcess
from webdyno.host.listening import addresses
from webdyno.host.server_process import FoundProcess, ServerProcess
from webdyno.servers.ready import Address

LATE_PORT_S = 5.0
"""Some servers open a debugger's or compiler's port first, and theirs within this time."""
ANY = ("0.0.0.0", "[::]")  # noqa: S104 (that is what others listen at)


def listeners_of(
    process: ServerProcess | FoundProcess | ContainedProcess, *, is_container: bool
) -> Sequence[str]:
    """Return where a server listens, in the network where it is asked."""
    if isinstance(process, ContainedProcess):
        return process.listeners()
    pids = process.pids()
    if is_container and isinstance(process, ServerProcess):  # others have other networks
        pids = [pid for pid in pids if _network(pid) == _network(process.pid)]
    return addresses(pids)


def is_among(listeners: Sequence[str], address: Address, *, is_container: bool = False) -> bool:
    """Whether an address is one of those, or in one; of containers only the port is known."""
    own = address.text.rpartition(":")[0]
    hosts = [
        host
        for host, _, port in (listener.rpartition(":") for listener in listeners)
        if int(port) == address.port
    ]
    return bool(hosts) and (is_container or not {*ANY, own}.isdisjoint(hosts))


def where_to_listen(address: Address, listeners: Sequence[str], *, runs_already: bool) -> str:
    """Return how a server that listens elsewhere comes to be asked there, or to listen here."""
    at_port = [listener for listener in listeners if listener.endswith(f":{address.port}")]
    if runs_already:
        return f"give url:http://{at_port[0] if at_port else listeners[0]}"
    if address.socket:
        return "have it listen at the path $SOCKET"
    if at_port:
        return f"have it listen at $HOST, which is {address.host} (often --host $HOST)"
    return (
        "have it listen on $PORT (often --port $PORT); if it does so later than after "
        f"{LATE_PORT_S:g} s, give --ready-within"
    )


def _network(pid: int) -> int | None:
    """The number of a process's network namespace; None once it has ended."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return None
