"""The load generator's threads: whether they got a CPU whenever they could have run."""

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from webdyno.probe.proc_files import PROC
from webdyno.probe.scene import Scene


def probe(scene: Scene) -> Generator[None, None, float | None]:
    """Tell how long a thread of the load generator waited for its CPU, as a share of the slot."""
    before, began_s = ClientReading.read(scene.client_pid), monotonic()
    yield
    ended_s = monotonic()
    return ClientReading.read(scene.client_pid).share_since(before, ended_s - began_s)


@dataclass(frozen=True)
class ClientReading:
    """Nanoseconds that each thread has waited while it could have run, by thread id.

    The kernel counts it in /proc/PID/task/TID/schedstat, waiting for a CPU quota included.
    """

    waited_ns: dict[int, int]

    @classmethod
    def read(cls, pid: int | None) -> "ClientReading":
        """Read all threads of a process; empty where the kernel doesn't tell."""
        waited = {}
        with suppress(OSError):
            if pid is not None:
                for task in (PROC / str(pid) / "task").iterdir():
                    _, delay, _ = (task / "schedstat").read_text().split()
                    waited[int(task.name)] = int(delay)
        return cls(waited)

    def share_since(self, earlier: "ClientReading", took_s: float) -> float | None:
        """Give the share of the time in which the thread that waited most did so."""
        waits = [now - earlier.waited_ns.get(thread, 0) for thread, now in self.waited_ns.items()]
        return min(max(waits) / 1e9 / took_s, 1.0) if waits and took_s > 0 else None
