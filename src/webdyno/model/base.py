"""What every model shares: unknown keys are mistakes, values don't change after they were read."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A strict, frozen record.

    Misspelt keys are refused instead of being silently ignored, and a value has the type that is
    asked for: true is no number, and neither is "5" or infinity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Foreign(BaseModel):
    """A frozen record that another program wrote: keys that it adds later are let through."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, strict=True, allow_inf_nan=False, serialize_by_alias=True
    )
