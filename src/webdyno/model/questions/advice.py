"""What other settings are worth to a variant: the baseline again, with one of them at a time."""

from typing import Annotated, ClassVar

from pydantic import Field

from webdyno.model.explain import Advice
from webdyno.model.question import QuestionSettings
from webdyno.model.text import Name


class AdviceSettings(QuestionSettings):
    """The settings that `webdyno explain --advice` changed."""

    key: ClassVar[str] = "advice"

    tried: Annotated[dict[Name, Advice], Field(min_length=1)]
    """By variant: the one setting that is another than the baseline's."""
