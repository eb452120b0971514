"""A variant: what one of the systems under comparison is, and what differs from the others."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from webdyno.core.base import Model
from webdyno.core.changes import Changes
from webdyno.core.request import WrittenPaths
from webdyno.core.setting import SettingValue
from webdyno.core.units import Size


class Variant(Model):
    """One stack with its settings and site, and whatever else differs from the other variants."""

    stack: str
    """A stack of the catalog, or one of your own (`cmd:…`, `rev:…`, `conf:…`, `image:…`, `url:…`)
    with the keys `dir`, `environment`, `services`, `setup`, `prepare`, `ready`, `ready_within`."""
    site: str | None = None
    """The experiment's by default; another one is requested at its first path, unless paths are
    given."""
    paths: WrittenPaths | None = None
    """Short for `load.paths`."""
    load: Changes = {}
    """Keys of `[load]` that differ from the experiment's; all but `loop`."""
    testbed: Changes = {}
    """Keys of `[testbed]` that differ from the experiment's."""
    settings: dict[str, SettingValue] = {}
    """Settings of the stack and its site, see `webdyno list NAME`."""
    memory: Size | None = None
    """Limit for all its services together."""
    cpus: Annotated[float, Field(ge=0.05, le=4096)] | None = None
    """How many of the servers' CPUs it gets, all by default; 0.8 is 80% of one."""

    @model_validator(mode="after")
    def _paths_once(self) -> "Variant":
        if self.paths is not None and "paths" in self.load:
            raise ValueError("paths is short for load.paths; give one of them")
        return self

    def with_settings(self, settings: Mapping[str, SettingValue]) -> "Variant":
        """Give it with some settings changed."""
        return self.replace(settings={**self.settings, **settings})

    @property
    def load_changes(self) -> Changes:
        """All that the load has of its own here."""
        return {**self.load, "paths": [*self.paths]} if self.paths else self.load
