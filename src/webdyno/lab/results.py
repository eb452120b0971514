"""What came of a run, by what was asked of it."""

from webdyno.lab.capacity_result import CapacityResult
from webdyno.lab.gate_result import GateRun
from webdyno.lab.result import Result
from webdyno.run.folder import RunFolder


def result_in(folder: RunFolder) -> Result:
    """Give what came of a run."""
    from webdyno.judge import question_of
    from webdyno.judge.questions.capacity import CapacitySearch
    from webdyno.judge.questions.gate import GateQuestion

    question = question_of(folder.head.experiment)
    if isinstance(question, GateQuestion):
        return GateRun(folder)
    return (CapacityResult if isinstance(question.loading, CapacitySearch) else Result)(folder)
