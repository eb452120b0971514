"""How often a ranking's ranks are wrong: simulated rankings whose order is known.

cd tests && ../.venv/bin/python simulations/ranking.py 500
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations

import numpy as np

from builders import run_head
from webdyno.core.experiment import Experiment
from webdyno.core.metrics import MetricRule
from webdyno.core.records import RoundRecord
from webdyno.core.run import RunHead
from webdyno.core.variant import Variant
from webdyno.evidence.point_data import PointData, Round
from webdyno.questions.ranking.decide import Standings, rounds_to_a_look, standings
from webdyno.questions.ranking.settings import RankingSettings

ROUNDS = 30
"""What there is time for when no variant leaves the race."""
NOISE = 0.02
"""Standard deviation of ln(value) from start to start."""

WORLDS: dict[str, Sequence[float]] = {
    "12 equal ones": [0.0] * 12,
    "6 pairs of equals, 5% apart": [0.05 * (rank // 2) for rank in range(12)],
    "12, each 2% from the next": [0.02 * rank for rank in range(12)],
    "12, each 10% from the next": [0.1 * rank for rank in range(12)],
    "8, each 3% from the next": [0.03 * rank for rank in range(8)],
    "4, each 5% from the next": [0.05 * rank for rank in range(4)],
}
"""ln of the variants' true values."""


@dataclass(frozen=True)
class MadeUp(PointData):
    """Rounds of which nothing is known but the variants' values."""

    reported: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def values(self, variant: str, rule: MetricRule) -> dict[int, float]:  # noqa: ARG002
        """Give those of the rounds that are looked at."""
        return {
            number: it for number, it in self.reported[variant].items() if number < len(self.rounds)
        }


@dataclass(frozen=True)
class Played:
    """A ranking at its end."""

    truth: Mapping[str, float]
    found: Standings
    rounds: int

    @property
    def is_wrong(self) -> bool:
        """Whether a variant is ranked before another that isn't worse."""
        return any(
            (first.worst < second.best and self.truth[one] <= self.truth[other])
            or (second.worst < first.best and self.truth[other] <= self.truth[one])
            for one, other in combinations(self.truth, 2)
            for first, second in [(self.found.rank(one), self.found.rank(other))]
        )

    @property
    def width(self) -> float:
        """How many ranks a variant may have, on average."""
        ranks = [self.found.rank(variant) for variant in self.truth]
        return sum(1 + it.worst - it.best for it in ranks) / len(ranks)


def play(logs: Sequence[float], rng: np.random.Generator, *, race: bool = True) -> Played:
    """Run a ranking whose budget is `ROUNDS` rounds of all variants.

    Without `race` none leaves it.
    """
    truth = {f"variant-{number}": log for number, log in enumerate(logs)}
    experiment = Experiment(
        title="A ranking",
        question="Who is first?",
        site="static",
        asks=RankingSettings(),
        variants={variant: Variant(stack=variant) for variant in truth},
    )
    reported: dict[str, dict[int, float]] = {variant: {} for variant in truth}
    racing, left, rounds = list(truth), ROUNDS * len(truth), 0
    look = rounds_to_a_look(experiment)
    head = run_head().model_copy(update={"experiment": experiment})
    while len(racing) > 1 and left >= len(racing):
        for variant in racing:
            reported[variant][rounds] = float(np.exp(truth[variant] + rng.normal(0, NOISE)))
        left -= len(racing)
        rounds += 1
        if race and rounds == look:
            racing, look = standings(_measured(head, reported, rounds)).racing, 2 * look
    found = standings(_measured(head, reported, rounds), to_the_end=True)
    return Played(truth, found, rounds)


def _measured(head: RunHead, reported: Mapping[str, Mapping[int, float]], rounds: int) -> MadeUp:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    records = (
        RoundRecord(round=number, order=[], started_at=at, took_s=1.0, ready_s={})
        for number in range(rounds)
    )
    return MadeUp(
        head=head,
        rounds=tuple(Round(record, ()) for record in records),
        reported=reported,
    )


def main(rankings: int) -> None:
    """Print a line for each world."""
    print("| variants | rankings with a wrong order | ranks a variant may have | without leaving |")  # noqa: T201
    print("| --- | --- | --- | --- |")  # noqa: T201
    for name, logs in WORLDS.items():
        rng = np.random.default_rng(0)
        played = [play(logs, rng) for _ in range(rankings)]
        wrong = sum(it.is_wrong for it in played) / rankings
        width = np.mean([it.width for it in played])
        whole = np.mean([play(logs, rng, race=False).width for _ in range(max(rankings // 5, 1))])
        print(f"| {name} | {wrong:.1%} | {width:.2f} | {whole:.2f} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
