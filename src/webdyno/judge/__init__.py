"""Says what a run's records mean: pure functions from records to a judgement.

Nothing here touches a process, a clock or a file. docs/method.md has the formulas and sources.
"""

from webdyno.judge.judgement import judge, ratios_so_far
from webdyno.judge.stop import Stop, decide

__all__ = ["Stop", "decide", "judge", "ratios_so_far"]
