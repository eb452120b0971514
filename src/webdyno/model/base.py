"""What every model shares: unknown keys are mistakes, values don't change after they were read."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A strict, frozen record: misspelt keys are refused instead of being silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Foreign(BaseModel):
    """A frozen record that another program wrote: keys that it adds later are let through."""

    model_config = ConfigDict(extra="ignore", frozen=True, serialize_by_alias=True)
