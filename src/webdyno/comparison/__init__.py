"""Says what a run's records mean: pure functions from records to a judgement.

Nothing here touches a process, a clock or a file. docs/validation/method.md has the formulas and
sources.
"""

from webdyno.comparison.asking import decide, foresee, judge, next_variants, question_of
from webdyno.comparison.stop import Foresight, Stop

__all__ = [
    "Foresight",
    "Stop",
    "decide",
    "foresee",
    "judge",
    "next_variants",
    "question_of",
]
