"""What came of a run, by what was asked of it."""

from webdyno.core.registry import imported, question_parts
from webdyno.interfaces.python.capacity_result import CapacityResult
from webdyno.interfaces.python.result import Result
from webdyno.measure.folder import RunFolder


def result_in(folder: RunFolder) -> Result:
    """Return what came of a run."""
    experiment = folder.head.experiment
    if own := question_parts(experiment.asks.key).result:
        result: Result = imported(own)(folder)
        return result
    return (CapacityResult if experiment.capacity else Result)(folder)
