"""What goes between webdyno and its agents on other hosts."""

from pathlib import PurePosixPath
from typing import Annotated, NamedTuple

from pydantic import Field

from webdyno.model.base import Amount, Model

FLEET_FILE = "fleet.json"


class FleetHead(Model):
    """`fleet.json` of a fleet's folder."""

    name: str
    """Of the experiment."""
    replicates: Annotated[int, Field(ge=1)]
    """How many hosts are to run it."""


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


class Ended(NamedTuple):
    """How the run there ended."""

    code: int
    """What its process ended with."""
    said: str
    """The end of what it printed."""
