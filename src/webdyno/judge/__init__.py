"""Says what a run's records mean: pure functions from records to a judgement.

Nothing here touches a process, a clock or a file. docs/method.md has the formulas and sources.
"""

from webdyno.judge.foresight import Foresight, foresee
from webdyno.judge.judgement import judge, ratios_so_far
from webdyno.judge.stop import ELSEWHERE, Stop, decide, fails_gate

__all__ = [
    "ELSEWHERE",
    "Foresight",
    "Stop",
    "decide",
    "fails_gate",
    "foresee",
    "judge",
    "ratios_so_far",
]
