"""What each question adds to how its runs are shown, in files that only this one knows."""

from webdyno.judge.point_data import RunData
from webdyno.judge.questions import question_of
from webdyno.report.questions.capacity import CapacityShow
from webdyno.report.questions.explain import ExplainShow
from webdyno.report.questions.gate import GateWhole
from webdyno.report.questions.ranking import RankingShow
from webdyno.report.questions.tuning import TuningShow
from webdyno.report.show import Show, WholeAnswer

SHOWS: list[Show] = [RankingShow(), CapacityShow(), ExplainShow(), TuningShow()]
"""All of them, in the order in which they are read."""


def whole_of(run: RunData) -> WholeAnswer | None:
    """Return the one answer for all points of a run, where its question has one."""
    experiment = run.head.experiment
    gate = question_of(experiment).judge_all_points(run)
    return GateWhole(gate, experiment.measure.max_rounds) if gate else None
