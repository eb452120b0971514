"""A host as the lab sees it: what its agent does there, whatever lies between."""

from collections.abc import Collection, Iterator
from typing import Any, Protocol

from webdyno.model.cluster import Ended, LinkFacts, Piece
from webdyno.model.machine import Machine
from webdyno.run.host import HostLost

__all__ = ["Acting", "Host", "HostLost", "RoleHost", "Runner"]


class Runner(Protocol):
    """Where experiments run for us."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
        """Run an experiment there, as `agent.replicate`. Raises HostLost, whenever it is."""

    def interrupt(self) -> None:
        """End what runs there for us."""


class Acting(Protocol):
    """An agent of the lab on a host, for one run: `role_agent.RoleAgent`."""

    @property
    def name(self) -> str:
        """That of its host."""

    def do(self, what: str, *values: Any) -> Any:  # noqa: ANN401 (each order has its own)
        """Give it an order. Raises what the agent raised, and HostLost."""

    def release(self) -> None:
        """Let it go, with everything that it has started; safe to call twice."""


class RoleHost(Protocol):
    """What can serve, or make load."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    @property
    def address(self) -> str:
        """By which other hosts reach it."""

    def acting(self, parcel: bytes, peers: Collection[str], *, yes: bool) -> Acting:
        """Have an agent of the lab there. Raises Mistake, Trouble, HostLost."""


class Host(Runner, RoleHost, Protocol):
    """Where a webdyno does what this one asks."""

    def look(self) -> Machine:
        """Tell what it is.

        Raises Mistake where it has another webdyno or none, HostLost where it doesn't answer.
        """

    def answer_link(self) -> Iterator[tuple[str, int]]:
        """Give where one measurement of a link is answered, and answer it. Raises HostLost."""

    def measure_link(self, address: str, port: int) -> LinkFacts:
        """Measure the link to who answers there. Raises Mistake where nobody does, HostLost."""
