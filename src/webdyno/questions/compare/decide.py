"""One-sided questions: whether a variant is better, or not worse by more than is tolerated."""

from collections.abc import Sequence
from typing import ClassVar

from webdyno.comparison.comparison import compare_as_asked
from webdyno.comparison.question import Question
from webdyno.comparison.stop import Stop
from webdyno.evidence.log_ratios import LogRatios
from webdyno.evidence.point_data import PointData


class OneSidedQuestion(Question):
    """Whether variants are better than the baseline, or not worse by more than is tolerated.

    It stops as soon as that is answered (`statistics/verdict.py`), however wide intervals are.
    """

    stops_by_width: ClassVar[bool] = False

    def _stop_if_answered(self, data: PointData, valid: PointData, elapsed_s: float) -> Stop | None:
        comparisons = compare_as_asked(valid)
        answered = all(
            comparison.one_sided and comparison.one_sided.answer != "inconclusive"
            for comparison in comparisons
        )
        asked = self.experiment.asks.one_sided
        why = f"the question is answered: {asked.words if asked else ''}"
        return Stop("question", why) if answered else None

    def _is_patient(self, pairs: Sequence[LogRatios]) -> bool:
        return False
