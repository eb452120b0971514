"""How much a single variant can take: what a search for the capacity asks of one."""

from typing import ClassVar

from webdyno.core.question import TOO_FEW, Asking, QuestionSettings
from webdyno.core.registry import ALONE


class AloneSettings(QuestionSettings):
    """Nothing but the variant."""

    key: ClassVar[str] = ALONE

    def check(self, experiment: Asking) -> None:
        """Raise ValueError where it isn't loaded in search of its capacity, once."""
        if experiment.capacity is None:
            raise ValueError(TOO_FEW)
        if experiment.factors:
            raise ValueError("factors is about two variants at least: leave it out, or add one")
