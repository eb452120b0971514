"""What limits a variant: the baseline again, with less of one thing at a time."""

from typing import Annotated, ClassVar

from pydantic import Field

from webdyno.core.base import Model
from webdyno.core.findings import Advice, Resource
from webdyno.core.question import QuestionSettings
from webdyno.core.text import Name


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
        return variant in self.interventions


class AdviceSettings(QuestionSettings):
    """The settings that `webdyno explain --advice` changed."""

    key: ClassVar[str] = "advice"

    tried: Annotated[dict[Name, Advice], Field(min_length=1)]
    """By variant: the one setting that is another than the baseline's."""


class DesignSettings(QuestionSettings):
    """Variants of which each setting is as in the one variant, or as in the other."""

    key: ClassVar[str] = "design"

    settings: list[str]
    """What differs, in words: `workers: 1 → 4`."""
    levels: dict[Name, list[bool]]
    """By variant, in the settings' order: whether it is as in the other variant."""

    @property
    def is_full(self) -> bool:
        """Whether every combination is there, so that what interacts can be known."""
        return len(self.levels) == 1 << len(self.settings)
