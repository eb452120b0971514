"""Which of two variants' settings make their difference: variants of a two-level design."""

from typing import ClassVar

from webdyno.model.question import QuestionSettings
from webdyno.model.text import Name


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
