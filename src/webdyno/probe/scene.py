"""What a probe is, and what it may look at."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from webdyno.bench import Bench
from webdyno.model.base import Model
from webdyno.probe.sampler import Sampler
from webdyno.stack import RunningStack

Figures = Mapping[str, float | int | str | None]

Part = Model | Mapping[str, Model] | Mapping[str, float] | Figures | float | None
"""What a probe tells of a slot: a model of `model/readings.py`, or any figures by their names."""


@dataclass(frozen=True)
class Scene:
    """A slot: who is loaded by whom, and where."""

    stack: RunningStack
    """The arm that is loaded."""
    others: Mapping[str, RunningStack]
    """The arms that should be idle, by name."""
    bench: Bench
    client_pid: int | None
    """The load generator, where it runs all the time."""
    sampler: Sampler = field(default_factory=Sampler)
    """For what has to be looked at inside the slot."""


Probe = Callable[[Scene], Generator[None, None, Part]]
"""Reads what it wants before the slot, yields while the load goes on, reads again, and returns what
has happened in between; None where that isn't known."""
