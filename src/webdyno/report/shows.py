"""What each question adds to how its runs are shown: found by name, as nobody here knows one."""

from webdyno.comparison import question_of
from webdyno.core.registry import SHOWS as SHOWN_BY
from webdyno.core.registry import imported, question_parts
from webdyno.evidence.point_data import RunData
from webdyno.report.show import Show, WholeAnswer

SHOWS: list[Show] = [imported(part)() for part in SHOWN_BY]
"""All of them, in the order in which they are read."""


def whole_of(run: RunData) -> WholeAnswer | None:
    """Return the one answer for all points of a run, where its question has one."""
    experiment = run.head.experiment
    answer = question_of(experiment).judge_all_points(run)
    if answer is None:
        return None
    shown = question_parts(experiment.asks.key).whole
    whole: WholeAnswer = imported(shown)(answer, experiment.measure.max_rounds)
    return whole
