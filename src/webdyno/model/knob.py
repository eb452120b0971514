"""Knobs: typed, bounded settings of services, stacks and sites."""

from typing import Annotated, Literal

from pydantic import Field

from webdyno.model.base import Model

KnobValue = bool | int | float | str
"""A setting as it stands in a TOML file."""

SERVER_CPUS = "server-cpus"
"""Default of a whole-number knob that follows the number of CPUs which the servers get."""


class SwitchKnob(Model):
    """On or off."""

    type: Literal["switch"]
    default: bool
    help: str

    def fault(self, value: KnobValue) -> str | None:
        """What is wrong with a value, in words that follow the knob's name; None if nothing is."""
        return None if isinstance(value, bool) else "is true or false"

    def range(self) -> str:
        """The allowed values, for people."""
        return "true or false"


class NumberKnob(Model):
    """A number within bounds; whole unless `type` is "real"."""

    type: Literal["whole", "real"]
    min: int | float
    max: int | float
    default: int | float | Literal["server-cpus"]
    help: str

    def fault(self, value: KnobValue) -> str | None:
        """What is wrong with a value, in words that follow the knob's name; None if nothing is."""
        if value == SERVER_CPUS and self.type == "whole":
            return None
        if isinstance(value, bool | str) or (self.type == "whole" and value != int(value)):
            return f"is a {self.type} number from {self.range()}"
        if not self.min <= value <= self.max:
            return f"must lie in {self.range()}"
        return None

    def range(self) -> str:
        """The allowed values, for people."""
        return f"{self.min} to {self.max}"


class ChoiceKnob(Model):
    """One of a few words."""

    type: Literal["choice"]
    choices: Annotated[list[str], Field(min_length=2)]
    default: str
    help: str

    def fault(self, value: KnobValue) -> str | None:
        """What is wrong with a value, in words that follow the knob's name; None if nothing is."""
        return None if value in self.choices else f"is one of {self.range()}"

    def range(self) -> str:
        """The allowed values, for people."""
        return ", ".join(self.choices)


Knob = Annotated[SwitchKnob | NumberKnob | ChoiceKnob, Field(discriminator="type")]
