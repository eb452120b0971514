"""What is looked at again and again inside a slot: one thread for all that want it."""

import threading
import time
from collections.abc import Callable

EVERY_S = 0.1

Look = Callable[[float], None]
"""Called with the seconds since the sampler's start."""


class Sampler:
    """Calls its looks ten times a second between `start` and `stop`."""

    def __init__(self) -> None:
        self._looks: list[Look] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def add(self, look: Look) -> None:
        """Have something looked at; before the start only."""
        self._looks.append(look)

    def start(self) -> None:
        """Begin."""
        self._began_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End; nothing is looked at any more when this returns. May be called twice."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(EVERY_S):
            at_s = time.monotonic() - self._began_s
            for look in self._looks:
                look(at_s)
