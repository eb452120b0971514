"""Processes that ran before webdyno came: found by their listening socket, and only watched."""

from collections.abc import Sequence
from pathlib import Path

import psutil

from webdyno.host.listening import who_listens


class FoundProcess:
    """Who listens on a port of this machine: what a `ServerProcess` tells, and nothing is done.

    They are looked for anew when one of them has ended: somebody may start the server anew.
    """

    left_running = 0

    def __init__(self, port: int) -> None:
        self._port = port
        self._roots: list[int] = []

    def roots(self) -> list[int]:
        """Those of its processes that none of the others has started; none if we may not see it."""
        if not self._roots or not all(map(psutil.pid_exists, self._roots)):
            pids = set(who_listens(self._port))
            self._roots = sorted(pid for pid in pids if not pids.intersection(_parents(pid)))
        return self._roots

    def pids(self) -> list[int]:
        """Its processes, with all that they have started."""
        found: dict[int, None] = {}
        for pid in self.roots():
            found |= dict.fromkeys([pid, *_children(pid)])
        return list(found)

    def poll(self) -> int | None:
        """None: its end is seen by those who ask it."""
        return None

    def listens(self, port: int, path: Path | None) -> bool:  # noqa: ARG002
        """Whoever listens there is what was asked for."""
        return True

    def ask_to_stop(self) -> None:
        """It isn't ours to stop."""

    def stop(self) -> None:
        """It isn't ours to stop."""


def _parents(pid: int) -> Sequence[int]:
    try:
        return [parent.pid for parent in psutil.Process(pid).parents()]
    except psutil.Error:
        return []


def _children(pid: int) -> Sequence[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
