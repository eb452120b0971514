"""What a probe is, what it may look at, and how it reads files of /proc."""

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.core.base import Model
from webdyno.host.this_machine import Testbed
from webdyno.servers.running import RunningStack

SAMPLE_EVERY_S = 0.1

Look = Callable[[float], None]
"""Called with the seconds since the sampler's start."""
Part = Model | Mapping[str, object] | float | None
"""What a probe says of a slot: a model of `core/readings.py`, or any figures by their names."""
PROC = Path("/proc")
USUAL_FILE_BYTES = 1 << 16
STOPPED = (b"T", b"t")
"""By a signal, and by a debugger: proc(5), /proc/PID/stat."""


class Sampler:
    """Calls its looks again and again between `start` and `stop`, ten times a second as a rule."""

    def __init__(self, every_s: float = SAMPLE_EVERY_S) -> None:
        self._every_s = every_s
        self._looks: list[Look] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._fault: Exception | None = None

    def add(self, look: Look) -> None:
        """Add what is called at each sample; before the start only."""
        self._looks.append(look)

    def start(self) -> None:
        """Begin, with time counted from here."""
        self._began_s = time.monotonic()
        self._thread.start()

    def stop(self, failure: type[BaseException] | None = None) -> None:
        """End; nothing is looked at any more when this returns. May be called twice.

        Raise what a look raised, since samples are missing then; not after another failure.
        """
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._fault and failure is None:
            raise self._fault

    def _run(self) -> None:
        try:
            while not self._end.wait(self._every_s):
                at_s = time.monotonic() - self._began_s
                for look in self._looks:
                    look(at_s)
        except Exception as fault:  # noqa: BLE001 (who waits for the samples raises it)
            self._fault = fault


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


def read_quickly(path: str) -> bytes:
    """Read a file of /proc that is small as a rule; three times as quick as with a file object."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = part = os.read(descriptor, USUAL_FILE_BYTES)
        while len(part) == USUAL_FILE_BYTES:
            part = os.read(descriptor, USUAL_FILE_BYTES)
            text += part
        return text
    finally:
        os.close(descriptor)


def number_after(name: bytes, text: bytes) -> int:
    """Return the number behind a name in a text such as /proc/PID/status; 0 if it isn't there.

    The first line is passed over: a program may have any name.
    """
    _, begin, rest = text.partition(b"\n" + name + b":")
    return int(rest.split(None, 1)[0]) if begin else 0


def counters(text: str, protocol: str) -> dict[str, int]:
    """Read a protocol's names and values in the text of /proc/net/snmp or /proc/net/netstat."""
    names, values = (
        line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")
    )
    return {name: int(value) for name, value in zip(names, values, strict=True)}


def is_stopped(pid: int) -> bool:
    try:
        return read_quickly(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, 1)[0] in STOPPED
    except (OSError, IndexError):
        return False
