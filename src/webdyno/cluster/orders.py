"""What goes between webdyno and its agents on other hosts."""

from pathlib import PurePosixPath
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter

from webdyno.core.base import Amount, Model

FLEET_FILE = "fleet.json"
SPREAD_FILE = "spread.json"


class FleetHead(Model):
    """`fleet.json` of a fleet's folder."""

    name: str
    """Of the experiment."""
    replicates: Annotated[int, Field(ge=1)]
    """How many hosts are to run it."""


class SpreadHead(Model):
    """`spread.json` of a folder with the points of an experiment, spread over hosts."""

    name: str
    """Of the experiment."""


class LinkFacts(Model):
    """What lies between two hosts, as seen from one of them."""

    round_trip_us: Amount
    """Of a byte there and back, the median of many."""
    rate_bits_per_s: Amount
    """Of one TCP connection."""


class Piece(NamedTuple):
    """A part of a file of a run that goes on, on another host."""

    file: PurePosixPath
    """Inside the run's folder."""
    start_bytes: int
    data: bytes


class AgentExit(NamedTuple):
    """How the run there ended."""

    code: int
    """What its process ended with."""
    said: str
    """The end of what it printed."""


class StartNode(Model):
    """An order to a host: be a node of a cluster."""

    order: Literal["start"] = "start"
    webdyno: str
    """The version that gives the order."""
    address: str
    """By which the other hosts reach it."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Where the head listens."""
    head: str | None
    """The head's address; None of the head."""
    token: str
    """Whoever has it may give orders."""
    debug_file: str | None = None
    """Where the node and its agents log; None: nowhere."""


class StopNode(Model):
    """An order to a host: end the node that was started there, and all that came of it."""

    order: Literal["stop"] = "stop"
    address: str
    """That it was started with."""


NODE_ORDER: TypeAdapter[StartNode | StopNode] = TypeAdapter(
    Annotated[StartNode | StopNode, Field(discriminator="order")]
)


class NodeAnswer(Model):
    """What became of an order to a host."""

    wrong: str | None = None
    """Why it wasn't carried out, for people."""
    ended: int = 0
    """How many processes ended."""
    killed: int = 0
    """How many of them had to be killed."""
