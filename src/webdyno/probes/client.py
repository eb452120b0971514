"""The load generator's threads: whether they got a CPU whenever they could have run."""

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Self

from webdyno.probes.host import Stat
from webdyno.probes.proc_files import PROC
from webdyno.probes.processes import is_stopped
from webdyno.probes.scene import Sampler, Scene


def probe(scene: Scene) -> Generator[None, None, float | None]:
    """Report how long a thread of the load generator waited for its CPU, as a share of the slot."""
    before, began_s = ClientReading.read(scene.client_pid), monotonic()
    yield
    ended_s = monotonic()
    return ClientReading.read(scene.client_pid).share_since(before, ended_s - began_s)


class ClientWatch:
    """Watches a load generator on a host without servers, while it is entered."""

    def __init__(self, cpus: Sequence[int], pid: int | None) -> None:
        """Watch a process on some CPUs; None where it runs within slots only."""
        self._cpus, self._pid = cpus, pid
        self.stopped_s = 0.0
        """In which somebody had stopped it."""

    def __enter__(self) -> Self:
        self._last_s = 0.0
        self._sampler = Sampler()
        self._sampler.add(self._look)
        self._sampler.start()
        self._began_s, self._before = monotonic(), ClientReading.read(self._pid)
        self._stat = Stat.read()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu = Stat.read().use_since(self._stat, self._cpus)
        """How its CPUs were used."""
        took_s = monotonic() - self._began_s
        self.waiting = ClientReading.read(self._pid).share_since(self._before, took_s)
        """As `Readings.client_waiting`."""
        self._sampler.stop()

    def _look(self, at_s: float) -> None:
        since_s, self._last_s = at_s - self._last_s, at_s
        if self._pid is not None:
            self.stopped_s += since_s * is_stopped(self._pid)


@dataclass(frozen=True)
class ClientReading:
    """Nanoseconds that each thread has waited while it could have run, by thread id.

    The kernel counts it in /proc/PID/task/TID/schedstat, waiting for a CPU quota included.
    """

    waited_ns: dict[int, int]

    @classmethod
    def read(cls, pid: int | None) -> "ClientReading":
        """Read all threads of a process; empty where the kernel doesn't say."""
        waited = {}
        with suppress(OSError):
            if pid is not None:
                for task in (PROC / str(pid) / "task").iterdir():
                    _, delay, _ = (task / "schedstat").read_text().split()
                    waited[int(task.name)] = int(delay)
        return cls(waited)

    def share_since(self, earlier: "ClientReading", took_s: float) -> float | None:
        """Give the share of the time in which the thread that waited most did so."""
        if not self.waited_ns or took_s <= 0:
            return None
        return min(self.waited_since(earlier) / took_s, 1.0)

    def waited_since(self, earlier: "ClientReading") -> float:
        """Give the seconds for which the thread that waited most did so; 0 where nobody knows."""
        waits = (now - earlier.waited_ns.get(thread, 0) for thread, now in self.waited_ns.items())
        return max(waits, default=0) / 1e9
