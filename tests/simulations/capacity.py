"""How right searches for a capacity are: of simulated queues whose capacity is known.

cd tests && PYTHONPATH=.:../bench ../.venv/bin/python simulations/capacity.py 200

Searches one by one, then runs of two queues with few rounds and short searches: how often the CIs
of the capacities and of their ratio hold the truth, and how often equal queues get a verdict. The
second argument chooses tables and queues by a part of their names.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from math import log, sqrt
from statistics import fmean

import numpy as np

from simulations.queues import RAMP_UP, search
from simulations.searches import Case, Judged, judged
from webdyno.core.base import Interval
from webdyno.core.capacity import Trial, by_rate, capacity_of, ends
from webdyno.core.judgement import Verdict
from webdyno.core.measure import MOST_DECIDING

SINGLE = (
    Case(10_000, 0.005),
    Case(10_000, 0.003, exponential=False),
    Case(10_000, 0.050, exponential=False),
    Case(10_000, 0.050, exponential=False, noise=0.05),
    Case(1_000, 0.020),
    Case(1_000, 0.020, exponential=False),
)
PAIRS = (
    (Case(1_000, 0.020), Case(1_000, 0.020)),
    (Case(1_000, 0.020), Case(3_000, 0.020)),
    (Case(1_000, 0.020, exponential=False), Case(1_000, 0.020, exponential=False)),
    (Case(10_000, 0.005), Case(10_000, 0.005)),
    (Case(10_000, 0.050, exponential=False), Case(10_000, 0.050, exponential=False)),
    (Case(100_000, 0.001), Case(100_000, 0.001)),
)
LENGTHS = ((2, 1), (3, 1), (6, 1), (6, 2), (6, MOST_DECIDING))
"""Rounds, and trials that decide in each search."""


def middle_of_bracket(trials: list[Trial]) -> float | None:
    """What a search without a line through its trials would say."""
    passing, failing = ends(by_rate([trial for trial in trials if trial.purpose == "search"]))
    return (passing.rate_rps * failing.rate_rps) ** 0.5 if passing and failing else None


def errors(
    trials: list[list[Trial]], found: Callable[[list[Trial]], float | None], truth_rps: float
) -> str:
    """Write mean and standard deviation of how far what was found lies from the truth."""
    off = [log(rate_rps / truth_rps) for each in trials if (rate_rps := found(each))]
    return f"{np.mean(off):+.1%} ± {np.std(off):.1%}"


def single_line(case: Case, searches: int) -> str:
    """Write what searches found of a queue."""
    rngs = map(np.random.default_rng, range(searches))
    found = [search(case.queue(rng), case.settings, case.per_s) for rng in rngs]
    took_s = np.mean([sum(trial.length_s * (1 + RAMP_UP) for trial in each) for each in found])
    return (
        f"| {case.name} | {errors(found, capacity_of, case.truth_rps)} "
        f"| {errors(found, middle_of_bracket, case.truth_rps)} "
        f"| {np.mean([len(each) for each in found]):.0f} | {took_s:.0f} |"
    )


def run_line(cases: tuple[Case, Case], runs: int, rounds: int, deciding: int) -> str:
    """Write how often intervals of runs hold the truth, how wide they are, and the time."""
    found = [judged(cases, seed, rounds, deciding) for seed in range(runs)]
    truths = [case.truth_rps for case in cases]
    capacities = [
        (value, truth) for each in found for value, truth in zip(each.values, truths, strict=True)
    ]
    ratios = [(each.ratio, truths[0] / truths[1]) for each in found]
    wrong = sum(map(is_wrong, found)) / runs if cases[0] == cases[1] else None
    name = cases[0].name if cases[0] == cases[1] else f"{cases[0].name}, with {cases[1].per_s:,.0f}"
    took_s = fmean(run.search_s for run in found)
    return (
        f"| {name} | {rounds} | {deciding} | {coverage(capacities)} | {ratio_coverage(ratios)} "
        f"| {'–' if wrong is None else f'{wrong:.0%}'} | {took_s:.0f} |"
    )


def coverage(of: Sequence[tuple[Interval, float]]) -> str:
    """Write the share of intervals that hold the truth, the mean error, and the half-width."""
    off = fmean(log(interval.estimate / truth) for interval, truth in of)
    return f"{held(of):.1%} | {off:+.1%} | {half_width(of):.1%}"


def ratio_coverage(of: Sequence[tuple[Interval, float]]) -> str:
    """Write the share of intervals that hold the truth, and the half-width."""
    return f"{held(of):.1%} | {half_width(of):.1%}"


def held(of: Sequence[tuple[Interval, float]]) -> float:
    """Give the share of intervals that hold the truth."""
    return fmean(interval.low <= truth <= interval.high for interval, truth in of)


def half_width(of: Sequence[tuple[Interval, float]]) -> float:
    """Give the mean half-width, as a share."""
    return fmean(sqrt(interval.high / interval.low) - 1 for interval, _ in of)


def is_wrong(found: Judged) -> bool:
    """Whether equal queues were distinguished."""
    return found.verdict in {Verdict.FASTER, Verdict.SLOWER}


def lines(number: int, chosen: str) -> Iterator[str]:
    """Give the lines of both tables."""
    yield "| queue | as found | middle of the bracket | trials | s |"
    yield "| --- | --- | --- | --- | --- |"
    yield from (single_line(case, number) for case in SINGLE if chosen in f"single {case.name}")
    yield ""
    yield (
        "| queue | rounds | deciding trials | capacities covered | mean error | half-width "
        "| ratios covered | half-width | wrong verdicts | s |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for cases in PAIRS:
        for rounds, deciding in LENGTHS:
            if chosen in f"runs {cases[0].name} with {cases[1].name} {rounds} {deciding}":
                yield run_line(cases, number, rounds, deciding)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    for line in lines(int(arguments[0]) if arguments else 40, "".join(arguments[1:2])):
        print(line, flush=True)  # noqa: T201
