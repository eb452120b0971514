"""Whether somebody stopped the load generator or the servers.

A program that is stopped does nothing, and its counters say nothing of that.
"""

from collections.abc import Generator

from webdyno.model.readings import StoppedUse
from webdyno.probe.proc_files import read_quickly
from webdyno.probe.processes import service_pids
from webdyno.probe.scene import Scene

MOST_PROCESSES = 8
"""Of a service: reading each of hundreds would weigh on what is measured."""

STOPPED = (b"T", b"t")
"""By a signal, and by a debugger: proc(5), /proc/PID/stat."""


def probe(scene: Scene) -> Generator[None, None, StoppedUse]:
    """Tell for how long processes stood still, as far as they are looked at."""
    client = [] if scene.client_pid is None else [scene.client_pid]
    servers = [
        pid
        for role, service in scene.stack.services().items()
        for pid in _some(service_pids(scene.stack.group, role, service))
    ]
    client_s = servers_s = 0.0
    last_s = 0.0

    def look(at_s: float) -> None:
        nonlocal client_s, servers_s, last_s
        since_s, last_s = at_s - last_s, at_s
        client_s += since_s * any(map(is_stopped, client))
        servers_s += since_s * any(map(is_stopped, servers))

    scene.sampler.add(look)
    yield
    return StoppedUse(client_s=client_s, servers_s=servers_s)


def _some(pids: list[int]) -> list[int]:
    """Give some of many, spread evenly, the first one always."""
    return pids[:: -(-len(pids) // MOST_PROCESSES) or 1]


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped now; one that has ended isn't."""
    try:
        return read_quickly(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, 1)[0] in STOPPED
    except (OSError, IndexError):
        return False
