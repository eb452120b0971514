"""The race that tuning is: after each round the worse half of the settings leaves."""

from typing import ClassVar

from webdyno.core.question import RaceSettings


class HalvingSettings(RaceSettings):
    """Which are better than the baseline: after each round the worse half of the others leaves."""

    key: ClassVar[str] = "halving"
