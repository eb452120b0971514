"""What the lab asks of any load generator: one slot of load, and an account of what happened."""

from dataclasses import dataclass
from typing import Protocol, Self

from webdyno.model.experiment import Load
from webdyno.model.load_result import LoadResult
from webdyno.model.mistake import Trouble


class GeneratorError(Trouble):
    """The load generator itself failed; the message is for people."""


@dataclass(frozen=True)
class Expectation:
    """The right answer to a request."""

    status: int
    body_bytes: int | None = None
    """None where the length may differ from answer to answer."""
    body_sha256: str | None = None
    """None where the body may differ from answer to answer."""


@dataclass(frozen=True)
class Request:
    """One entry of a slot's mix; all entries are asked for in equal shares."""

    url: str
    expect: Expectation


@dataclass(frozen=True)
class LoadOrder:
    """One slot's work."""

    id: str
    requests: tuple[Request, ...]
    load: Load
    duration_s: float


class Generator(Protocol):
    """A program that makes load; it may keep connections open from one slot to the next."""

    name: str

    def slot(self, order: LoadOrder) -> LoadResult:
        """Load a server for one slot and give back what happened; raise GeneratorError."""

    @property
    def pid(self) -> int | None:
        """The process that makes the load, to be watched; None when it isn't running."""

    def __enter__(self) -> Self:
        """Start the generator."""

    def __exit__(self, *_: object) -> None:
        """End the generator; safe to call twice."""
