"""What a probe is, and what it may look at."""

import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from webdyno.core.base import Model
from webdyno.host.this_machine import Testbed
from webdyno.servers.running import RunningStack

SAMPLE_EVERY_S = 0.1

Look = Callable[[float], None]
"""Called with the seconds since the sampler's start."""
Part = Model | Mapping[str, object] | float | None
"""What a probe says of a slot: a model of `core/readings.py`, or any figures by their names."""


class Sampler:
    """Calls its looks again and again between `start` and `stop`, ten times a second as a rule."""

    def __init__(self, every_s: float = SAMPLE_EVERY_S) -> None:
        self._every_s = every_s
        self._looks: list[Look] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def add(self, look: Look) -> None:
        """Have something looked at; before the start only."""
        self._looks.append(look)

    def start(self) -> None:
        """Begin, with time counted from here."""
        self._began_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End; nothing is looked at any more when this returns. May be called twice."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self._every_s):
            at_s = time.monotonic() - self._began_s
            for look in self._looks:
                look(at_s)


@dataclass(frozen=True)
class Scene:
    """A slot: who is loaded by whom, and where."""

    stack: RunningStack
    """The variant that is loaded."""
    others: Mapping[str, RunningStack]
    """The variants that should be idle, by name."""
    testbed: Testbed
    client_pid: int | None
    """The load generator, where it runs all the time."""
    sampler: Sampler = field(default_factory=Sampler)
    """For what has to be looked at inside the slot."""


Probe = Callable[[Scene], Generator[None, None, Part]]
"""Reads what it wants before the slot, yields while the load goes on, reads again, and returns what
has happened in between; None where that isn't known."""
