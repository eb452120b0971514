"""Simulated runs that go on until their verdict survives a bound, all of which interference took.

Equal variants look different by the whole bound: the worst case for a run that looks again and
again. Run as a program it prints how often that misleads:

    uv run python tests/simulations/survival.py [RUNS]
"""

import sys
from math import log1p

import numpy as np

from webdyno.comparison.comparison import ALPHA, DELTA
from webdyno.comparison.ratio import shown_estimate
from webdyno.comparison.stop import OUTNUMBERED
from webdyno.core.judgement import Verdict
from webdyno.core.measure import Measure
from webdyno.statistics.bounds import Bound, with_bound
from webdyno.statistics.interval import Logs, sign_flip_p
from webdyno.statistics.verdict import VerdictRule, answer, more_rounds_needed

MEASURE = Measure()
FEWEST = MEASURE.min_rounds
QUESTION = VerdictRule("higher", DELTA, ALPHA, FEWEST)


def misled(noise: float, interference: float, runs: int, seed: int = 0) -> float:
    """Give the share of runs that call equals different.

    `noise`: standard deviation of a round's log ratio; `interference`: what was taken from the
    throughput of the baseline, as a share, and is its bound.
    """
    rng = np.random.default_rng(seed)
    return sum(_ends(rng, noise, log1p(interference)) is Verdict.FASTER for _ in range(runs)) / runs


def _ends(rng: np.random.Generator, noise: float, moved: float) -> Verdict:
    """Follow the stop rule; give the verdict that holds at the end."""
    d, bound, waits = rng.normal(moved, noise, MEASURE.max_rounds), Bound("steal", up=moved), False
    for n in range(FEWEST, MEASURE.max_rounds):
        if waits and n % FEWEST:
            continue
        precise, sampling_verdict, verdict, needed = _look(d[:n], bound)
        if n % FEWEST == 0:
            waits = precise and verdict is not sampling_verdict
        foreseen = needed is not None and n + needed <= MEASURE.max_rounds
        hopeless = not foreseen and n >= OUTNUMBERED * FEWEST
        if precise and (verdict is sampling_verdict or hopeless):
            return verdict
    return _look(d, bound)[2]


def _look(d: Logs, bound: Bound) -> tuple[bool, Verdict, Verdict, int | None]:
    n, against = len(d), d - bound.up if d.sum() > 0 else d + bound.down
    shown, precise = shown_estimate(d, MEASURE, 1 - ALPHA)
    sampling_verdict = answer(shown, sign_flip_p(d), n, QUESTION).verdict
    worst_case = answer(with_bound(shown, bound), sign_flip_p(against), n, QUESTION).verdict
    verdict = sampling_verdict if worst_case is sampling_verdict else Verdict.INCONCLUSIVE
    return precise, sampling_verdict, verdict, more_rounds_needed(shown, n, QUESTION, bound)


def main() -> None:
    """Print the shares."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print("noise  interference  misled")  # noqa: T201
    for noise in (0.015, 0.02, 0.03, 0.04):
        for interference in (0.03, 0.1):
            share = misled(noise, interference, runs)
            print(f"{noise:5.1%}  {interference:12.0%}  {share:6.1%}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
