"""Simulated experiments, judged as real ones are, to see how often the judge is right.

Run as a program it prints the table of docs/method.md:

    uv run python tests/judge/simulation.py [EXPERIMENTS]
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from webdyno.judge.comparison import ALPHA, DELTA, fewest_blocks, shown_estimate
from webdyno.judge.interval import Estimate, Logs, sign_flip_p
from webdyno.judge.verdict import Question, answer
from webdyno.model.experiment import Measure
from webdyno.model.judgement import Verdict

SLOTS = 4


@dataclass(frozen=True)
class World:
    """The truth: a ratio, and the standard deviation of the logarithm of restarts and slots."""

    ratio: float
    restart_sd: float
    slot_sd: float


@dataclass(frozen=True)
class Outcome:
    """One experiment's end."""

    blocks: int
    shown: Estimate
    d: Logs

    def verdict(self, measure: Measure) -> Verdict:
        """Judge it."""
        question = Question("higher", DELTA, ALPHA, fewest_blocks(measure, 1))
        return answer(self.shown, sign_flip_p(self.d), self.blocks, question).verdict


def experiments(world: World, count: int, measure: Measure, seed: int = 0) -> Iterator[Outcome]:
    """Make experiments that stop by the stop rule, the budget left aside."""
    rng = np.random.default_rng(seed)
    shape = (2, measure.max_blocks, SLOTS)
    for _ in range(count):
        restarts = rng.normal(0, world.restart_sd, (*shape[:2], 1))
        slots = rng.normal(0, world.slot_sd, shape)
        arm, baseline = np.exp(restarts + slots).mean(axis=2)
        yield _until_stop(log(world.ratio) + np.log(arm / baseline), measure)


def _until_stop(d: Logs, measure: Measure) -> Outcome:
    for blocks in range(fewest_blocks(measure, 1), measure.max_blocks):
        shown, precise = shown_estimate(d[:blocks], measure, 1 - ALPHA)
        if precise:
            return Outcome(blocks, shown, d[:blocks])
    return Outcome(measure.max_blocks, shown_estimate(d, measure, 1 - ALPHA)[0], d)


def coverage(outcomes: list[Outcome], ratio: float) -> float:
    """Give the share of intervals that hold the true ratio."""
    truth = log(ratio)
    return sum(o.shown.low <= truth <= o.shown.high for o in outcomes) / len(outcomes)


def shares(outcomes: list[Outcome], measure: Measure) -> dict[Verdict, float]:
    """Give the share of each verdict."""
    counted = Counter(outcome.verdict(measure) for outcome in outcomes)
    return {verdict: counted[verdict] / len(outcomes) for verdict in Verdict}


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    measure = Measure()
    print(f"{count} experiments a row, precision {measure.precision}, {SLOTS} slots an arm")  # noqa: T201
    print("noise  ratio  coverage  blocks  faster  slower  equivalent  undecided")  # noqa: T201
    for noise in (0.01, 0.02, 0.03, 0.04, 0.05):
        for ratio in (1.0, 1.05):
            outcomes = list(experiments(World(ratio, noise, noise), count, measure))
            by = shares(outcomes, measure)
            blocks = sum(o.blocks for o in outcomes) / count
            print(  # noqa: T201
                f"{noise:5.0%}  {ratio:5.2f}  {coverage(outcomes, ratio):8.1%}  {blocks:6.1f}"
                f"  {by[Verdict.FASTER]:6.1%}  {by[Verdict.SLOWER]:6.1%}"
                f"  {by[Verdict.EQUIVALENT]:10.1%}  {by[Verdict.UNDECIDED]:9.1%}"
            )


if __name__ == "__main__":
    main()
