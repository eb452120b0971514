"""Races of three variants or more, which variants leave while they go on."""

from abc import ABC

from webdyno.core.question import Asking, QuestionSettings

RANKING = "ranking"
"""The key of the race whose result is ranks."""
FEWEST_IN_RACE = 3


class RaceSettings(QuestionSettings, ABC):
    """What all races have in common."""

    def check(self, experiment: Asking) -> None:
        """Raise ValueError where so many variants can't race."""
        if len(experiment.variants) < FEWEST_IN_RACE:
            raise ValueError("a race has three variants at least; two are compared without it")
