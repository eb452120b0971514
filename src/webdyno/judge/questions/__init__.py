"""What an experiment asks: one module for each question, and one function that finds it.

Whoever measures, judges or shows an experiment asks its question what holds for it. None needs to
know which one that is.
"""

from webdyno.judge.point_data import PointData
from webdyno.judge.questions.capacity import AloneQuestion, CapacitySearch
from webdyno.judge.questions.compare import Loading, OneSidedQuestion, Question
from webdyno.judge.questions.gate import GateQuestion
from webdyno.judge.questions.halving import HalvingQuestion
from webdyno.judge.questions.interventions import AdviceQuestion, LimitsQuestion, SettingsQuestion
from webdyno.judge.questions.races import RankingQuestion
from webdyno.judge.stop import Foresight, Stop
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Judgement

QUESTIONS: list[type[Question]] = [
    GateQuestion,
    RankingQuestion,
    HalvingQuestion,
    AloneQuestion,
    LimitsQuestion,
    AdviceQuestion,
    SettingsQuestion,
    OneSidedQuestion,
    Question,
]
"""All of them; an experiment asks the first one that says so.

Each tells by the experiment whether it is asked, by a key of its own. There is no key `kind`: files
and recorded runs have the others, and two of these, `capacity` and `profile`, go with any question.
"""
IN_SLOTS = Loading()


def question_of(experiment: Experiment) -> Question:
    """Find out what an experiment asks."""
    asked_one = next(question for question in QUESTIONS if question.is_asked(experiment))
    searched = experiment.capacity
    return asked_one(experiment, CapacitySearch(searched) if searched else IN_SLOTS)


def judge(data: PointData) -> Judgement:
    """Judge a point, finished or not, by what its experiment asks."""
    return question_of(data.experiment).judge(data)


def decide(data: PointData, elapsed_s: float) -> Stop | None:
    """Tell, after each round, whether to stop a run that has taken so long; None means go on."""
    return question_of(data.experiment).stop(data, elapsed_s)


def foresee(data: PointData) -> Foresight | None:
    """Foresee how far a run is from stopping by itself: for who waits for it, and no verdict."""
    return question_of(data.experiment).foresee(data)


def next_variants(data: PointData) -> list[str]:
    """Name the variants of the next round, in their order."""
    return question_of(data.experiment).next_variants(data)
