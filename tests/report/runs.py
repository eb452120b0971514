"""The kinds of run that a report must be able to show."""

from collections.abc import Callable
from functools import cache

from builders import SimulatedRun
from report.comparisons import (
    censored,
    decided,
    hostile,
    hostile_words,
    inconclusive,
    interference,
    invalid,
    no_round,
    one_round,
    piloted,
    probed,
    several_variants,
)
from report.questions import capacities, costs, gated, ranking, tuned
from webdyno.comparison import judge_sweep
from webdyno.report.show import RunView
from webdyno.report.view import run_view

ALL = (
    capacities,
    costs,
    ranking,
    tuned,
    decided,
    probed,
    interference,
    piloted,
    several_variants,
    invalid,
    inconclusive,
    censored,
    gated,
    one_round,
    no_round,
    hostile,
    hostile_words,
)


Make = Callable[[], SimulatedRun]


@cache
def seen(run: SimulatedRun) -> RunView:
    """What there is to see of a run."""
    return run_view(run.whole, judge_sweep(run.whole))
