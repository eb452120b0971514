"""Simulated experiments, judged as real ones are, to see how often the judge is right.

Run as a program it prints the table of docs/validation/coverage.md:

    uv run python tests/simulations/comparisons.py [EXPERIMENTS]
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import expm1, log
from statistics import fmean

import numpy as np

from webdyno.comparison.comparison import ALPHA, DELTA, fewest_rounds
from webdyno.comparison.ratio import is_large_and_known, shown_estimate, too_noisy
from webdyno.comparison.stop import PILOT_ROUNDS, choice, random_effects, seconds_for_a_variant
from webdyno.core.judgement import Verdict
from webdyno.core.measure import FIRST_SLOTS, Measure
from webdyno.evidence.noise import beyond_chance, lost
from webdyno.planning.settings import WINDOW_S
from webdyno.statistics.bounds import UNBIASED, Bound, with_bound
from webdyno.statistics.interval import Estimate, Logs, sign_flip_p
from webdyno.statistics.verdict import VerdictRule, answer


@dataclass(frozen=True)
class World:
    """The truth: a ratio, and the standard deviation of the logarithm of restarts and slots."""

    ratio: float
    restart_sd: float
    slot_sd: float
    start_s: float = 2.2
    """What a fresh start of a variant takes, its warm-up included: about that of nginx and
    Apache."""
    pilots_s: float = 4.0
    first_slots: int = FIRST_SLOTS
    """Of each variant in the first rounds, unless requested: two after a pilot."""
    interference: float = 0.0
    """Share of a slot's time that a neighbour takes at most: anything up to that, of both
    variants."""
    follows: float = 0.0
    """Share of what is left that it takes of the variant's slots in addition."""


SLOT_WORLDS = (
    World(1.05, 0.03, 0.01),
    World(1.05, 0.05, 0.05),
    World(1.05, 0.02, 0.04),
    World(1.05, 0.0, 0.06),
    World(1.05, 0.0, 0.1),
    World(1.05, 0.02, 0.06, start_s=10.0),
    World(1.05, 0.0, 0.05, start_s=10.0),
    World(1.05, 0.02, 0.04, start_s=0.3, first_slots=2),
    World(1.5, 0.03, 0.1, start_s=0.3, first_slots=2),
    World(3.3, 0.03, 0.15, start_s=0.3, first_slots=2),
    World(1.05, 0.01, 0.05, start_s=3.0, first_slots=2),
)
"""In which noise comes more from restarts, or more from slots."""

PROMPT_WORLDS = tuple(
    World(ratio, noise, noise, start_s=0.3, first_slots=2)
    for ratio in (1.5, 3.3)
    for noise in (0.05, 0.1, 0.2)
)
"""In which a difference is large, and may be reported before it is known well."""

NEIGHBOUR_WORLDS = tuple(
    World(1.05, 0.01, 0.01, interference=share, follows=follows)
    for share in (0.02, 0.1, 0.3, 0.75)
    for follows in (0.0, 0.01, 0.05, 0.3)
)
"""In which a neighbour takes some of the time, and may take more of it from one variant."""


@dataclass(frozen=True)
class Outcome:
    """One experiment's end."""

    rounds: int
    shown: Estimate
    d: Logs
    slots: int
    """Of each variant, in the last round."""
    took_s: float
    bound: Bound = UNBIASED
    """By which the neighbour can have moved the ratio beyond chance."""

    @property
    def decisive(self) -> Estimate:
        """The interval that the verdict rests on."""
        return with_bound(self.shown, self.bound)

    def moved(self, by: float) -> "Outcome":
        """The same noise at another true ratio, as long as that isn't why a run stops."""
        shown = Estimate(
            self.shown.low + by, self.shown.centre + by, self.shown.high + by, self.shown.method
        )
        return replace(self, shown=shown, d=self.d + by)

    def verdict(self, measure: Measure) -> Verdict:
        """Judge it."""
        question = VerdictRule("higher", DELTA, ALPHA, fewest_rounds(measure, 1))
        return answer(self.shown, sign_flip_p(self.d), self.rounds, question).verdict


def experiments(world: World, count: int, measure: Measure, seed: int = 0) -> Iterator[Outcome]:
    """Make experiments that stop by the stop rule, the budget left aside."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield _until_stop(world, measure, rng)


def _until_stop(world: World, measure: Measure, rng: np.random.Generator) -> Outcome:
    d: Logs = np.empty(0)
    pilot: list[Logs] = []
    taken: list[Logs] = []
    slots, took_s = measure.slots_per_variant or world.first_slots, 0.0
    slot_s = measure.slot_s or WINDOW_S
    while True:
        restarts = rng.normal(0, world.restart_sd, (2, 1))
        logs = restarts + rng.normal(0, world.slot_sd, (2, slots))
        if world.interference:
            # A neighbour is busy for minutes or not, and more in one slot than in another.
            shares = world.interference * rng.uniform() * rng.uniform(size=(2, slots))
            shares[0] = 1 - (1 - shares[0]) * (1 - world.follows)
            logs += np.log1p(-shares)
            taken.append(shares)
        variant, baseline = np.exp(logs).mean(axis=1)
        took_s += 2 * (world.start_s + slots * slot_s)
        d = np.append(d, log(world.ratio) + log(variant / baseline))
        if len(d) <= PILOT_ROUNDS:
            pilot.append(logs[0] - logs[1])
        if len(d) >= fewest_rounds(measure, 1):
            shown, precise = shown_estimate(d, measure, 1 - ALPHA)
            most = measure.max_rounds
            if too_noisy(d, 1 - ALPHA):
                most = round(most * measure.patience)
            left_s = prompt_s(measure) - world.pilots_s - took_s
            is_last_prompt = 0 <= left_s < 2 * (world.start_s + slots * slot_s)
            prompt = is_last_prompt and is_large_and_known(d, 1 - ALPHA)
            if precise or prompt or len(d) >= most:
                bound = _bound(taken) if taken else UNBIASED
                return Outcome(len(d), shown, d, slots, took_s, bound)
        if len(d) == PILOT_ROUNDS and measure.slots_per_variant is None:
            slots = choice(*random_effects(pilot), world.start_s, slot_s, slots)


def prompt_s(measure: Measure) -> float:
    """Until when rounds may end, for a prompt answer about two variants; never is 0."""
    return 2 * (seconds_for_a_variant(measure) or 0.0)


def _bound(taken: Sequence[Logs]) -> Bound:
    """Bound the ratio as the judge does, by rounds' shares of the variant and the baseline."""
    losses = [[lost(float(shares.mean())) for shares in each] for each in taken]
    down, up = (
        beyond_chance([sign * (mine - theirs) for mine, theirs in losses]) for sign in (1, -1)
    )
    return Bound("other-work", down=down, up=up)


def coverage(outcomes: list[Outcome], ratio: float) -> float:
    """Give the share of intervals that hold the true ratio."""
    truth = log(ratio)
    return sum(o.decisive.low <= truth <= o.decisive.high for o in outcomes) / len(outcomes)


def shares(outcomes: list[Outcome], measure: Measure) -> dict[Verdict, float]:
    """Give the share of each verdict."""
    counted = Counter(outcome.verdict(measure) for outcome in outcomes)
    return {verdict: counted[verdict] / len(outcomes) for verdict in Verdict}


def main() -> None:
    """Print both tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    measure = Measure()
    print(f"{count} experiments a row, precision {measure.precision}")  # noqa: T201
    print("noise  ratio  coverage  rounds  faster  slower  equivalent  inconclusive")  # noqa: T201
    for noise in (0.01, 0.02, 0.03, 0.04, 0.05, 0.1):
        for ratio in (1.0, 1.05, 1.5, 4.0):
            outcomes = list(experiments(World(ratio, noise, noise), count, measure))
            by = shares(outcomes, measure)
            print(  # noqa: T201
                f"{noise:5.0%}  {ratio:5.2f}  {coverage(outcomes, ratio):8.1%}"
                f"  {fmean(o.rounds for o in outcomes):6.1f}"
                f"  {by[Verdict.FASTER]:6.1%}  {by[Verdict.SLOWER]:6.1%}"
                f"  {by[Verdict.EQUIVALENT]:10.1%}  {by[Verdict.INCONCLUSIVE]:9.1%}"
            )
    print("neighbor  follows  coverage  by sampling  interval")  # noqa: T201
    for world in NEIGHBOUR_WORLDS:
        measure = Measure()
        outcomes = list(experiments(world, count, measure))
        unbiased = [replace(outcome, bound=UNBIASED) for outcome in outcomes]
        print(  # noqa: T201
            f"{world.interference:8.0%}  {world.follows:7.0%}"
            f"  {coverage(outcomes, world.ratio):8.1%}  {coverage(unbiased, world.ratio):11.1%}"
            f"  ±{expm1(fmean(o.decisive.half_width for o in outcomes)):7.1%}",
            flush=True,
        )
    print("noise  ratio  rounds  within 25 s  interval  coverage  faster")  # noqa: T201
    for world in PROMPT_WORLDS:
        outcomes = list(experiments(world, count, Measure()))
        in_time = [world.pilots_s + o.took_s <= prompt_s(Measure()) for o in outcomes]
        print(  # noqa: T201
            f"{world.slot_sd:5.0%}  {world.ratio:5.2f}  {fmean(o.rounds for o in outcomes):6.1f}"
            f"  {fmean(in_time):11.1%}  ±{expm1(fmean(o.shown.half_width for o in outcomes)):7.1%}"
            f"  {coverage(outcomes, world.ratio):8.1%}"
            f"  {shares(outcomes, Measure())[Verdict.FASTER]:6.1%}",
            flush=True,
        )
    print("start  restarts  slots' noise  slots  rounds  minutes  interval  coverage  found")  # noqa: T201
    for world in SLOT_WORLDS:
        for slots in (2, 4, None):
            measure = Measure(slots_per_variant=slots)
            outcomes = list(experiments(world, count, measure))
            print(  # noqa: T201
                f"{world.start_s:4.1f} s  {world.restart_sd:8.0%}  {world.slot_sd:12.0%}"
                f"  {slots or fmean(o.slots for o in outcomes):5.1f}"
                f"  {fmean(o.rounds for o in outcomes):6.1f}"
                f"  {fmean(o.took_s for o in outcomes) / 60:7.2f}"
                f"  ±{expm1(fmean(o.shown.half_width for o in outcomes)):7.1%}"
                f"  {coverage(outcomes, world.ratio):8.1%}"
                f"  {shares(outcomes, measure)[Verdict.FASTER]:5.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
