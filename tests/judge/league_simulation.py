"""How often a league's places are wrong: simulated leagues whose order is known.

cd tests && ../.venv/bin/python judge/league_simulation.py 500
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations

import numpy as np

from builders import run_head
from webdyno.judge.point_data import Block, PointData
from webdyno.judge.questions.races import Standings, blocks_to_a_look, standings
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.metrics import MetricRule
from webdyno.model.records import BlockRecord
from webdyno.model.run import RunHead

BLOCKS = 30
"""What there is time for when no arm leaves the race."""
NOISE = 0.02
"""Standard deviation of ln(value) from start to start."""

WORLDS: dict[str, Sequence[float]] = {
    "12 equal ones": [0.0] * 12,
    "6 pairs of equals, 5% apart": [0.05 * (place // 2) for place in range(12)],
    "12, each 2% from the next": [0.02 * place for place in range(12)],
    "12, each 10% from the next": [0.1 * place for place in range(12)],
    "8, each 3% from the next": [0.03 * place for place in range(8)],
    "4, each 5% from the next": [0.05 * place for place in range(4)],
}
"""ln of the arms' true values."""


@dataclass(frozen=True)
class MadeUp(PointData):
    """Blocks of which nothing is known but the arms' values."""

    told: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def values(self, arm: str, rule: MetricRule) -> dict[int, float]:  # noqa: ARG002
        """Give those of the blocks that are looked at."""
        return {number: it for number, it in self.told[arm].items() if number < len(self.blocks)}


@dataclass(frozen=True)
class Played:
    """A league at its end."""

    truth: Mapping[str, float]
    found: Standings
    blocks: int

    @property
    def is_wrong(self) -> bool:
        """Whether an arm is placed before another that isn't worse."""
        return any(
            (first.worst < second.best and self.truth[one] <= self.truth[other])
            or (second.worst < first.best and self.truth[other] <= self.truth[one])
            for one, other in combinations(self.truth, 2)
            for first, second in [(self.found.place(one), self.found.place(other))]
        )

    @property
    def width(self) -> float:
        """How many places an arm may have, on average."""
        places = [self.found.place(arm) for arm in self.truth]
        return sum(1 + it.worst - it.best for it in places) / len(places)


def play(logs: Sequence[float], rng: np.random.Generator, *, race: bool = True) -> Played:
    """Run a league whose budget is `BLOCKS` blocks of all arms; without `race` none leaves it."""
    truth = {f"arm-{number}": log for number, log in enumerate(logs)}
    experiment = Experiment(
        title="A league",
        question="Who is first?",
        site="static",
        race="league",
        arms={arm: Arm(stack=arm) for arm in truth},
    )
    told: dict[str, dict[int, float]] = {arm: {} for arm in truth}
    racing, left, blocks = list(truth), BLOCKS * len(truth), 0
    look = blocks_to_a_look(experiment)
    head = run_head().model_copy(update={"experiment": experiment})
    while len(racing) > 1 and left >= len(racing):
        for arm in racing:
            told[arm][blocks] = float(np.exp(truth[arm] + rng.normal(0, NOISE)))
        left -= len(racing)
        blocks += 1
        if race and blocks == look:
            racing, look = standings(_measured(head, told, blocks)).racing, 2 * look
    found = standings(_measured(head, told, blocks), to_the_end=True)
    return Played(truth, found, blocks)


def _measured(head: RunHead, told: Mapping[str, Mapping[int, float]], blocks: int) -> MadeUp:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    records = (
        BlockRecord(block=number, order=[], started_at=at, took_s=1.0, ready_s={})
        for number in range(blocks)
    )
    return MadeUp(
        head=head,
        blocks=tuple(Block(record, ()) for record in records),
        told=told,
    )


def main(leagues: int) -> None:
    """Print a line for each world."""
    print("| arms | leagues with a wrong order | places an arm may have | without leaving |")  # noqa: T201
    print("| --- | --- | --- | --- |")  # noqa: T201
    for name, logs in WORLDS.items():
        rng = np.random.default_rng(0)
        played = [play(logs, rng) for _ in range(leagues)]
        wrong = sum(it.is_wrong for it in played) / leagues
        width = np.mean([it.width for it in played])
        whole = np.mean([play(logs, rng, race=False).width for _ in range(max(leagues // 5, 1))])
        print(f"| {name} | {wrong:.1%} | {width:.2f} | {whole:.2f} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
