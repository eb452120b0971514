"""What every model shares: unknown keys are mistakes, values don't change after they were read.

How a model is read is worked out when that is first done: no command reads all of them.
"""

from collections.abc import Callable
from math import inf
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=2**63)]
"""How many of something were counted. Beyond it no counter counts, and files are damaged."""

Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
"""How much of something was measured, in any unit."""


class _Replaceable(BaseModel):
    """A record that can be copied with other values in some fields."""

    def replace(self, **changes: object) -> Self:
        """Give a copy with other values in some fields, as `datetime.replace` does.

        Raise TypeError for a field that there isn't. Values are not validated.
        """
        if unknown := changes.keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        return self.model_copy(update=changes)


class Model(_Replaceable):
    """A strict, frozen record.

    Misspelt keys are refused instead of being silently ignored, and a value has the type that is
    requested: true is no number, and neither is "5" or infinity.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class Foreign(_Replaceable):
    """A frozen record that another program wrote: keys that it adds later are let through."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        defer_build=True,
    )


ENDLESS = 1e9
"""A ratio beyond it counts as one without a bound."""


class Interval(Model):
    """An estimate with its confidence interval."""

    low: float
    estimate: float
    high: float
    confidence: float = 0.95

    def mapped(self, by: Callable[[float], float]) -> "Interval":
        """Give that of what follows from this by a function that only rises, or only falls."""
        low, high = sorted((by(self.low), by(self.high)))
        return self.replace(low=low, estimate=by(self.estimate), high=high)

    def inverse(self) -> "Interval":
        """Give that of the ratio the other way round."""
        return Interval(
            low=1 / self.high,
            estimate=1 / self.estimate,
            high=1 / self.low if self.low else inf,
            confidence=self.confidence,
        )
