"""What limits a variant: the baseline again, with less of one thing at a time."""

from typing import Annotated, ClassVar

from pydantic import Field

from webdyno.model.base import Model
from webdyno.model.explain import Resource
from webdyno.model.question import QuestionSettings
from webdyno.model.text import Name


class Intervention(Model):
    """What was taken from a variant that else is its baseline."""

    resource: Resource
    """Of what."""
    share: Annotated[float, Field(gt=0)]
    """What was left of it; above 1 where there was more."""
    setting: str | None = None
    """Of workers: which setting says their number."""


class LimitsSettings(QuestionSettings):
    """The resources that `webdyno explain` reduced, to find the baseline's bottleneck."""

    key: ClassVar[str] = "limits"

    interventions: Annotated[dict[Name, Intervention], Field(min_length=1)]
    """By variant."""

    def means_to_differ(self, variant: str) -> bool:
        """Whether a variant has less of one thing on purpose."""
        return variant in self.interventions
