"""What every model shares: unknown keys are mistakes, values don't change after they were read.

How a model is read is worked out when that is first done: no command reads all of them.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=2**63)]
"""How many of something were counted. Beyond it no counter counts, and files are damaged."""

Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
"""How much of something was measured, in any unit."""


class Model(BaseModel):
    """A strict, frozen record.

    Misspelt keys are refused instead of being silently ignored, and a value has the type that is
    asked for: true is no number, and neither is "5" or infinity.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class Foreign(BaseModel):
    """A frozen record that another program wrote: keys that it adds later are let through."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        defer_build=True,
    )
