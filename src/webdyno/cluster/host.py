"""A host as the lab sees it: what its agent does there, whatever lies between."""

from collections.abc import Iterator
from typing import Protocol

from webdyno.model.cluster import Ended, LinkFacts, Piece
from webdyno.model.machine import Machine


class HostLost(Exception):  # noqa: N818 (no error of ours)
    """The host, or the way to it, is gone; the message says what is known of it."""


class Runner(Protocol):
    """Where experiments run for us."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
        """Run an experiment there, as `agent.replicate`. Raises HostLost, whenever it is."""

    def interrupt(self) -> None:
        """End what runs there for us."""


class Host(Runner, Protocol):
    """Where a webdyno does what this one asks."""

    def look(self) -> Machine:
        """Tell what it is.

        Raises Mistake where it has another webdyno or none, HostLost where it doesn't answer.
        """

    def answer_link(self) -> Iterator[tuple[str, int]]:
        """Give where one measurement of a link is answered, and answer it. Raises HostLost."""

    def measure_link(self, address: str, port: int) -> LinkFacts:
        """Measure the link to who answers there. Raises Mistake where nobody does, HostLost."""
