"""Gates of servers whose starts differ: what time there is goes into more starts.

Whether they do is seen in the first rounds, from how starts scatter and not from how revisions
differ, and before the first look at the answer: so its risk is spent over all rounds to come.
"""

from webdyno.judge.order_statistics import exceeded_by_largest
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.run import FEWEST_STARTS, arms_whose_starts_differ
from webdyno.model.measure import Measure

TIMES_THE_ROUNDS = 2
"""So many times the rounds tell two states that lie 20 % apart well enough for a tolerance of 5 %
(tests/judge/starts_simulation.py)."""
DEFAULT_MOST_BLOCKS = Measure().max_blocks
WINDOW_S = 0.2
"""Of a slot, once starts are known to differ: longer ones tell nothing more."""
ANSWERS = 2 * exceeded_by_largest(0.99)
"""Of an arm in a round, which its 99th percentile takes; twice as many, for luck."""


def starts_decide(data: PointData) -> bool:
    """Whether a gate's first rounds say that its servers differ from start to start."""
    if data.experiment.gate is None:
        return False
    return any(arms_whose_starts_differ(data.first(FEWEST_STARTS)))


def most_blocks(data: PointData) -> int:
    """Give the most rounds of an experiment: more where starts decide, unless the user says."""
    given = data.measure.max_blocks
    more = given == DEFAULT_MOST_BLOCKS and starts_decide(data)
    return given * TIMES_THE_ROUNDS if more else given


def short_window_s(window_s: float, data: PointData) -> float:
    """Give the length of slots that are short, but have answers enough for all metrics."""
    answers = min(
        sum(slot.load.requests.completed for slot in block.of(arm))
        for block in data.first(FEWEST_STARTS).blocks
        for arm in {slot.arm for slot in block.slots}
    )
    enough_s = window_s * ANSWERS / answers if answers else window_s
    return min(window_s, max(WINDOW_S, enough_s))
