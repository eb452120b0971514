"""How right searches for a capacity are: of simulated queues whose capacity is known.

cd tests && PYTHONPATH=.:../bench ../.venv/bin/python search/capacity_simulation.py 40

One search, then runs of six rounds: their intervals, where each round begins from the pilot run,
where it begins near what those before found, and where only one trial decides, for want of time.
"""

import sys
from collections.abc import Callable
from math import exp, log
from statistics import geometric_mean

import numpy as np

from rig.queues import capacity_of_md1, capacity_of_mm1
from search.queues import RAMP_UP, Queue, search
from webdyno.judge.interval import estimate
from webdyno.model.capacity import (
    MOST_DECIDING,
    CapacitySettings,
    Trial,
    by_rate,
    capacity_of,
    ends,
)
from webdyno.search.capacity import near

ROUNDS = 6
NOISE = 0.05
"""Standard deviation of ln(time of service) from trial to trial, where the machine is noisy."""

CASES: dict[str, tuple[float, bool, str, float, float]] = {
    "M/M/1, 10 000/s, p99 < 5 ms": (1e-4, True, "p99<5ms", capacity_of_mm1(1e-4, 5e-3, 0.01), 0),
    "M/D/1, 10 000/s, p99 < 3 ms": (1e-4, False, "p99<3ms", capacity_of_md1(1e-4, 3e-3, 0.01), 0),
    "M/D/1, 10 000/s, p99 < 50 ms: a knee": (1e-4, False, "p99<50ms", 1e4, 0),
    "the same, 5% noise": (1e-4, False, "p99<50ms", 1e4, NOISE),
    "M/M/1, 1 000/s, p99 < 20 ms": (1e-3, True, "p99<20ms", capacity_of_mm1(1e-3, 0.02, 0.01), 0),
    "M/D/1, 1 000/s, p99 < 20 ms": (1e-3, False, "p99<20ms", capacity_of_md1(1e-3, 0.02, 0.01), 0),
}


def middle_of_bracket(trials: list[Trial]) -> float | None:
    """What a search without a line through its trials would say."""
    passing, failing = ends(by_rate([it for it in trials if it.purpose == "search"]))
    return (passing.rate_rps * failing.rate_rps) ** 0.5 if passing and failing else None


def errors(
    trials: list[list[Trial]], found: Callable[[list[Trial]], float | None], truth_rps: float
) -> str:
    """Write mean and standard deviation of how far what was found lies from the truth."""
    off = [log(rate_rps / truth_rps) for each in trials if (rate_rps := found(each))]
    return f"{np.mean(off):+.1%} ± {np.std(off):.1%}"


def noise_of(rng: np.random.Generator, noise: float) -> Callable[[], float]:
    """Give a source of factors by which a machine is slower from trial to trial."""
    return lambda: exp(noise * rng.standard_normal())


def rounds(seed: int, case: str, *, knows: bool, deciding: int) -> tuple[list[float], float]:
    """Search in six rounds; give what they found, and how long a search took, ramp-ups included."""
    service_s, exponential, slo, _, noise = CASES[case]
    rng = np.random.default_rng(seed)
    found, took_s = list[float](), 0.0
    for _ in range(ROUNDS):
        queue = Queue(service_s, exponential, rng, slower=noise_of(rng, noise))
        near_rps = near(geometric_mean(found), rng.uniform()) if knows and found else None
        settings = CapacitySettings(slo=[slo])
        trials = search(queue, settings, 1 / service_s, near_rps=near_rps, deciding=deciding)
        took_s += sum(it.length_s * (1 + RAMP_UP) for it in trials) / ROUNDS
        if rate_rps := capacity_of(trials):
            found.append(rate_rps)
    return found, took_s


def run_line(case: str, runs: int, *, knows: bool, deciding: int) -> str:
    """Write how often the interval of a run holds the truth, how wide it is, and the time."""
    truth_rps = CASES[case][3]
    held, half, centre, took_s = 0, [], [], []
    for seed in range(runs):
        found, search_s = rounds(seed, case, knows=knows, deciding=deciding)
        told = estimate(np.log(found), 0.95)
        held += told.low <= log(truth_rps) <= told.high
        half.append(told.half_width)
        centre.append(told.centre - log(truth_rps))
        took_s.append(search_s)
    where = "where those before ended" if knows else "from the pilot run"
    return (
        f"| {case} | {where} | {deciding} | {held / runs:.0%} | {np.mean(centre):+.1%} ± "
        f"{np.std(centre):.1%} | {np.mean(half):.1%} | {np.mean(took_s):.0f} |"
    )


def main(searches: int) -> None:
    """Print a line for each queue, and those of runs."""
    one_search(searches)
    print()  # noqa: T201
    print("| queue | rounds begin | deciding trials | covers | mean | half-width | s |")  # noqa: T201
    print("| --- | --- | --- | --- | --- | --- | --- |")  # noqa: T201
    for case in CASES:
        for knows, deciding in ((False, MOST_DECIDING), (True, MOST_DECIDING), (True, 1)):
            print(run_line(case, searches, knows=knows, deciding=deciding), flush=True)  # noqa: T201


def one_search(searches: int) -> None:
    """Print a line for each queue."""
    print("| queue | as found | middle of the bracket | trials | s |")  # noqa: T201
    print("| --- | --- | --- | --- | --- |")  # noqa: T201
    for name, (service_s, exponential, slo, truth_rps, noise) in CASES.items():
        found = []
        for seed in range(searches):
            rng = np.random.default_rng(seed)
            queue = Queue(service_s, exponential, rng, slower=noise_of(rng, noise))
            found.append(search(queue, CapacitySettings(slo=[slo]), 1 / service_s))
        took_s = np.mean([sum(it.length_s * (1 + RAMP_UP) for it in each) for each in found])
        print(  # noqa: T201
            f"| {name} | {errors(found, capacity_of, truth_rps)} "
            f"| {errors(found, middle_of_bracket, truth_rps)} "
            f"| {np.mean([len(each) for each in found]):.0f} | {took_s:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
