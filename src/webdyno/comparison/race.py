"""What all races have in common: variants leave while they go on."""

from abc import ABC, abstractmethod
from typing import ClassVar

from webdyno.comparison.question import Question
from webdyno.comparison.stop import Stop, used_up
from webdyno.core.judgement import Comparison
from webdyno.core.records import RoundRecord
from webdyno.evidence.point_data import PointData


class RaceQuestion(Question, ABC):
    """What all races have in common.

    Variants leave, and whoever is left decides when it is over.
    """

    spares_variants: ClassVar[bool] = True
    stops_by_width: ClassVar[bool] = False
    looks_long: ClassVar[bool] = False
    shows_shorter_windows: ClassVar[bool] = False

    def ratios_so_far(self, data: PointData) -> list[Comparison]:
        """None: they don't decide."""
        return []

    def so_far(self, data: PointData) -> str:
        """Say how many variants were in the last round, and when it is first seen who leaves."""
        rounds = [record for record in data.records if isinstance(record, RoundRecord)]
        if len(rounds) < self.fewest_rounds:
            return f"who leaves the race is seen after round {self.fewest_rounds}"
        return f"{len(set(rounds[-1].order))} of {len(self.experiment.variants)} were in the race"

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Stop where nobody is left to race, or, not before the first look, time is used up."""
        if over := self._over(data):
            return Stop("precision", over)
        if len(data.rounds) < self.fewest_rounds:
            return None
        return used_up(data, data.measure, elapsed_s)

    @abstractmethod
    def _over(self, data: PointData) -> str:
        """Say why nobody is left to race; nothing while somebody is."""
