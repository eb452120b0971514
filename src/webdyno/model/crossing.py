"""Where the trials of a search say that the capacity is."""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


class Tried(Protocol):
    """What counts of a trial, as `Trial` in `capacity.py` has it."""

    @property
    def rate_rps(self) -> float:
        """What was due per second."""

    @property
    def length_s(self) -> float:
        """The part that counts."""

    @property
    def asked(self) -> int:
        """Requests that were due in it."""

    @property
    def beyond(self) -> list[int | None]:
        """By objective: how many of them were beyond it; None where that isn't known."""

    @property
    def allowed(self) -> list[float]:
        """By objective: share of them that may be."""


Point = tuple[float, float, int, int]
"""Of a trial: its rate as a share of the middle of the bracket, the independent clusters in it,
requests that were due, and those beyond the objective."""

BELOW, ABOVE = 0.8, 1.1
"""The fit takes trials whose rates lie between these two shares of the middle of the bracket."""
LONG_ENOUGH = 0.45
"""It takes trials of at least this share of the longest one's length."""
BEYOND_BRACKET = 0.03
"""The capacity lies at most so far (ln) outside of the bracket."""
STEEPEST, USUAL_STEEPNESS = 300.0, 30.0
"""Slopes of ln(share beyond) over ln(rate): at a knee all is well, and 1 % more is too much."""
CLUSTERS = 64.0
"""Independent clusters of late answers in one of the longest trials, about: the dispersion."""


def crossing_rps(trials: Sequence[Tried], passing_rps: float, failing_rps: float) -> float:
    """Find where the share beyond an objective is what is allowed, of the objective hit first.

    ln(share) rises with ln(rate) in a straight line, nearly, where it is small. Line and crossing
    are fitted to the trials around the bracket by the likelihood of negative binomial counts
    (Hilbe 2011, chapter 8), since late answers come in clusters.
    """
    middle_rps = sqrt(passing_rps * failing_rps)
    longest_s = max(trial.length_s for trial in trials)
    near = [
        trial
        for trial in trials
        if trial.length_s >= LONG_ENOUGH * longest_s
        if BELOW * middle_rps <= trial.rate_rps <= max(ABOVE * middle_rps, failing_rps)
    ] or [trial for trial in trials if trial.rate_rps in {passing_rps, failing_rps}]
    low, high = log(passing_rps / middle_rps), log(failing_rps / middle_rps)
    within = (low - BEYOND_BRACKET, high + BEYOND_BRACKET)

    def crossing(objective: int, allowed: float) -> float:
        points = tuple(
            (trial.rate_rps / middle_rps, CLUSTERS * trial.length_s / longest_s, trial.asked, late)
            for trial in near
            if (late := trial.beyond[objective]) is not None
        )
        return _fitted(points, allowed, within)

    shares = list(enumerate(near[0].allowed))
    # One that held in all of them says no more than that it is hit somewhere above.
    hit = [
        (number, allowed)
        for number, allowed in shares
        if any((trial.beyond[number] or 0) > allowed * trial.asked for trial in near)
    ]
    return middle_rps * exp(min(crossing(number, allowed) for number, allowed in hit or shares))


# A judgement asks for a block's capacity in several places, and a run is judged after each block.
@lru_cache(maxsize=4096)
def _fitted(points: tuple[Point, ...], allowed: float, within: tuple[float, float]) -> float:
    """Fit the crossing, as ln(rate), to the trials."""
    x, clusters, asked, beyond = np.array(points, float).T
    x = np.log(x)

    def unlikely(guess: NDArray[np.float64]) -> float:
        crossing, ln_steepness = guess
        share = np.exp(np.minimum(log(allowed) + np.exp(ln_steepness) * (x - crossing), 0.0))
        mean = asked * share
        likely = beyond * np.log(mean / (mean + clusters)) - clusters * np.log(mean + clusters)
        return float(0.05 * (ln_steepness - log(USUAL_STEEPNESS)) ** 2 - likely.sum())

    bounds = [within, (0.0, log(STEEPEST))]
    begins = [(0.0, log(steepness)) for steepness in (5, 50)]
    fits = [minimize(unlikely, begin, bounds=bounds, method="L-BFGS-B") for begin in begins]
    return float(min(fits, key=lambda fit: float(fit.fun)).x[0])
