"""Which of some variants is better: what is asked unless an experiment says otherwise."""

from typing import ClassVar

from webdyno.model.question import QuestionSettings
from webdyno.model.registry import COMPARE


class CompareSettings(QuestionSettings):
    """Nothing but variants."""

    key: ClassVar[str] = COMPARE
