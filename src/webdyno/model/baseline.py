"""A baseline: what a gate found of its head, kept as a file, and the machine it was found on."""

from datetime import datetime
from typing import Literal

from webdyno.model.base import Model
from webdyno.model.machine import Machine


class BaselineFigure(Model):
    """One metric of one endpoint."""

    endpoint: str
    metric: str
    value: float


class Baseline(Model):
    """The file."""

    format: Literal[1] = 1
    revision: str
    measured_at: datetime
    machine: Machine
    figures: list[BaselineFigure]
