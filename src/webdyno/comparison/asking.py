"""What an experiment asks: each question in a module, found by the key that asks it.

Whoever measures, judges or shows an experiment asks its question what holds for it. None needs to
know which one that is.
"""

from webdyno.comparison.capacity import CapacitySearch
from webdyno.comparison.question import Loading, Question
from webdyno.comparison.stop import Foresight, Stop
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Judgement
from webdyno.core.registry import imported, question_parts
from webdyno.evidence.point_data import PointData

IN_SLOTS = Loading()


def question_of(experiment: Experiment) -> Question:
    """Return the question that an experiment asks."""
    decides: type[Question] = imported(question_parts(experiment.asks.key).decides)
    searched = experiment.capacity
    return decides(experiment, CapacitySearch(searched) if searched else IN_SLOTS)


def judge(data: PointData) -> Judgement:
    """Judge a point, finished or not, by what its experiment asks."""
    return question_of(data.experiment).judge(data)


def decide(data: PointData, elapsed_s: float) -> Stop | None:
    """Report, after each round, whether to stop a run that has taken so long; None means go on."""
    return question_of(data.experiment).stop(data, elapsed_s)


def foresee(data: PointData) -> Foresight | None:
    """Foresee how far a run is from stopping by itself: for who waits for it, and no verdict."""
    return question_of(data.experiment).foresee(data)


def next_variants(data: PointData) -> list[str]:
    """Name the variants of the next round, in their order."""
    return question_of(data.experiment).next_variants(data)
