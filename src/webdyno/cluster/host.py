"""A host as the lab sees it: what its agent does there, whatever lies between."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from webdyno.model.cluster import Ended, LinkFacts, Piece
from webdyno.model.machine import Machine
from webdyno.run.backend import ClientsHost, HostLost, ServersHost, StartedArm, Surroundings
from webdyno.stack import Placement

__all__ = ["Host", "HostLost", "RemoteAgent", "RoleHost", "Runner"]


class Runner(Protocol):
    """Where experiments run for us."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
        """Run an experiment there, as `agent.replicate`. Raises HostLost, whenever it is."""

    def interrupt(self) -> None:
        """End what runs there for us."""


class RemoteAgent(ServersHost, ClientsHost, Protocol):
    """An agent of the lab on a host, for one run: all that can be asked of it from elsewhere.

    `orders` derives from this what goes over the wire; `role_agent.RoleAgent` does it there.
    Everything raises what the agent raises, and HostLost.
    """

    def look(self) -> Surroundings:
        """Look at what can change a result there; see that what is needed is there."""

    def answer_heartbeats(self) -> tuple[str, int]:
        """Answer heartbeats from now on; give address and port."""

    def expect_heartbeats(self, address: str, port: int) -> None:
        """Wait for heartbeats from there whenever load is made."""

    def at_point(self, number: int) -> None:
        """Work at a point of the experiment from now on."""

    def ports_for(self, arm: str, roles: Sequence[str]) -> list[int]:
        """Find a free port for each of some services of an arm."""

    def start(self, arm: str, folder: Path, placement: Placement | None = None) -> StartedArm:
        """Start an arm's servers anew, or those that a placement has there.

        `folder` is a name among the agent's own, by which `files` gives what is in it.
        """

    def files(self, folder: Path) -> Mapping[str, bytes]:
        """Give what servers were started with, and what they said, by path in the folder."""

    def close(self) -> None:
        """Leave nothing there."""


class RoleHost(Protocol):
    """What can serve, or make load."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    @property
    def address(self) -> str:
        """By which other hosts reach it."""

    def agent(self, parcel: bytes, peers: Collection[str], *, yes: bool) -> RemoteAgent:
        """Have an agent of the lab there. Raises Mistake, Trouble, HostLost."""

    def release(self) -> None:
        """Let its agent go, with everything that it has started; safe to call twice."""


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
