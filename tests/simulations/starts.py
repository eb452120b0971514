"""Simulated gates of equal revisions, each of whose starts draws which of two states it is in.

Requests of one state cost so many per cent more CPU time than those of the other, and its
throughput and 99th percentile are worse by as much. The judge's own functions see whether starts
differ, plan the rounds, and answer. Run as a program it prints the table of
docs/validation/gate.md:

    cd tests && PYTHONPATH=. uv run python simulations/starts.py [GATES]
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import log1p
from statistics import fmean

import numpy as np

from webdyno.core.limits import GateAnswer
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME, METRICS, THROUGHPUT
from webdyno.questions.gate.claims import MeasuredClaim, answer_claims
from webdyno.questions.gate.decide import TIMES_THE_ROUNDS, gate_answer
from webdyno.questions.gate.settings import DEFAULT_TOLERANCES
from webdyno.validity.starts import FEWEST_STARTS, how_starts_differ

MEASURE = Measure()
SLOTS = 2
START_SD, SLOT_SD = 0.002, 0.003
"""Of ln(CPU per request), apart from the states: of a start, and of a slot."""
NOISES = {THROUGHPUT: 0.012, "latency_p99_us": 0.05}
"""Of the other metrics, of a variant in a round."""


@dataclass(frozen=True)
class World:
    """The truth of a gate whose revisions are equal."""

    apart: float
    """By how much the one state costs more than the other, as a share."""
    mixing: float | None
    """Share of starts in the dear state; None: each variant has its own, for good, of 20 to 80%."""


@dataclass(frozen=True)
class Ended:
    """How a simulated gate ended."""

    answer: GateAnswer
    rounds: int
    reported: bool
    """Whether it is said that starts differ."""


WORLDS = [World(apart, mixing) for apart in (0.05, 0.12, 0.2) for mixing in (0.2, 0.5, 0.8, None)]


def gates(world: World, how_many: int, seed: int = 0) -> Iterator[Ended]:
    """Make gates; each goes on until it is answered or its rounds are used up."""
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        yield _gate(world, rng)


def _gate(world: World, rng: np.random.Generator) -> Ended:
    longest = MEASURE.max_rounds * TIMES_THE_ROUNDS
    mixings = rng.uniform(0.2, 0.8, (3, 1)) if world.mixing is None else world.mixing
    states = (rng.random((3, longest)) < mixings) * log1p(world.apart)
    starts = states + rng.normal(0, START_SD, states.shape)
    slots = starts[:, :, None] + rng.normal(0, SLOT_SD, (*states.shape, SLOTS))
    logs = {CPU_TIME: slots.mean(axis=2)}
    for metric, sd in NOISES.items():
        worse = 1 if METRICS[metric].metric.better == "lower" else -1
        logs[metric] = worse * states + rng.normal(0, sd, states.shape)
    known = _reported(slots[:, :FEWEST_STARTS])
    most = MEASURE.max_rounds * (TIMES_THE_ROUNDS if known else 1)
    answer, rounds = GateAnswer.INCONCLUSIVE, MEASURE.min_rounds - 1
    while answer is GateAnswer.INCONCLUSIVE and rounds < most:
        rounds += 1
        claims = [
            MeasuredClaim(
                endpoint="/",
                rule=METRICS[metric],
                tolerance=DEFAULT_TOLERANCES[metric],
                d=(of_variants[2] - (of_variants[0] + of_variants[1]) / 2)[:rounds],
                again=(of_variants[1] - of_variants[0])[:rounds],
                most_rounds=most,
            )
            for metric, of_variants in logs.items()
        ]
        answers = answer_claims(claims, MEASURE, len(claims))
        answer = gate_answer([it.answer for it in answers])
    return Ended(answer, rounds, _reported(slots[:, :rounds]))


def _reported(slots: np.ndarray) -> bool:
    by_variant = [dict(enumerate(of_variant)) for of_variant in slots]
    return any(
        how_starts_differ(mine, by_variant[:variant] + by_variant[variant + 1 :]) is not None
        for variant, mine in enumerate(by_variant)
    )


def main() -> None:
    """Print how gates end."""
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| states apart | dear starts | pass | fail | inconclusive | told why | mean rounds |")  # noqa: T201
    print("| --- | --- | --- | --- | --- | --- | --- |")  # noqa: T201
    for world in WORLDS:
        ended = list(gates(world, how_many))
        answers = [it.answer for it in ended]
        shares = [
            f"{answers.count(answer) / how_many:.1%}"
            for answer in (GateAnswer.PASS, GateAnswer.FAIL, GateAnswer.INCONCLUSIVE)
        ]
        reported = f"{sum(it.reported for it in ended) / how_many:.1%}"
        mixing = "each variant its own" if world.mixing is None else f"{world.mixing:.0%}"
        rounds = f"{fmean(it.rounds for it in ended):.1f}"
        cells = [f"{world.apart:.0%}", mixing, *shares, reported, rounds]
        print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
