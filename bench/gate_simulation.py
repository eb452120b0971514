"""How often a gate is right: simulated gates, answered by the judge's own functions.

Every endpoint has CPU per request, throughput and 99th percentile, each with lognormal noise
of its own for each fresh start of each of the three variants. Of several endpoints one needs more
CPU time; its throughput falls and its percentile rises by as much. The noise of metrics is
independent, which is when a gate errs most often. Each row of the table is for 1 000 gates unless
reported otherwise.

With `--confirm` what fails is measured once more, at those endpoints alone. Builds may have luck:
head's CPU time lies off by as much in all rounds of one measurement, and by other luck in the next.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log1p
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from rig.options import count
from rig.script import Script
from rig.shares import share_words
from webdyno.core.limits import GateAnswer
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS
from webdyno.questions.gate.claims import MeasuredClaim, answer_claims
from webdyno.questions.gate.decide import gate_answer
from webdyno.questions.gate.settings import DEFAULT_TOLERANCES
from webdyno.statistics.interval import Logs

EXAMPLES = """\
  the table of docs/validation/gate.md (some minutes)
    .venv/bin/python bench/gate_simulation.py
  a rough one
    .venv/bin/python bench/gate_simulation.py --gates 100
  the table of gates that confirm
    .venv/bin/python bench/gate_simulation.py --confirm
"""

MEASURE = Measure()
CHANGES = (0.0, 0.03, 0.05, 0.07, 0.1)
NOISES = {
    "quiet": {"server_cpu_us": 0.008, "throughput_rps": 0.012, "latency_p99_us": 0.05},
    "restless": {"server_cpu_us": 0.02, "throughput_rps": 0.03, "latency_p99_us": 0.12},
}
"""Standard deviation of ln(value) of one variant in one round, by metric."""
ENDPOINTS = (1, 3)
LUCKS, CONFIRMED_CHANGES = (0.0, 0.03, 0.05), (0.0, 0.07, 0.1, 0.15)
"""Of builds, and what head needs more, where failures are confirmed."""


@dataclass(frozen=True)
class Gate:
    """How a simulated gate ended."""

    answer: GateAnswer
    rounds: float
    """Mean over endpoints."""
    named: frozenset[str]
    """Endpoints that are called worse."""
    confirmed: bool = False
    """Whether it fails as well where that takes a second measurement."""


@dataclass(frozen=True)
class World:
    """The truth of a gate."""

    change: float
    """What the first endpoint needs more, as a share."""
    noise: str
    endpoints: int
    baseline_again: float = 0.0
    """By how much, in ln, the second variant of the baseline differs from the first, lastingly."""
    at_margin: bool = False
    """Whether every metric everywhere is worse by exactly its tolerance instead."""
    luck: float = 0.0
    """Standard deviation, in ln, of what a build of head takes more or less by its luck alone."""


def gates(world: World, how_many: int, seed: int = 0) -> Iterator[Gate]:
    """Make gates; each endpoint stops by itself when its answer is known."""
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        first = _measured(world, rng, range(world.endpoints))
        again = _measured(world, rng, sorted(map(int, first.worse))) if first.worse else first
        yield Gate(first.answer, first.rounds, first.worse, bool(first.worse & again.worse))


@dataclass(frozen=True)
class Measured:
    """What one measurement of some endpoints said."""

    answer: GateAnswer
    rounds: float
    worse: frozenset[str]
    """Endpoints with a claim that is worse."""


def _measured(world: World, rng: np.random.Generator, endpoints: Sequence[int]) -> Measured:
    ends = [
        _until_answered(_logs(world, rng, changed=it == 0), str(it), len(endpoints))
        for it in endpoints
    ]
    claims = [claim for end in ends for claim in end]
    answers = answer_claims(claims, MEASURE, len(claims))
    return Measured(
        gate_answer([it.answer for it in answers]),
        fmean(len(end[0].d) for end in ends),
        frozenset(it.claim.endpoint for it in answers if it.answer == "worse"),
    )


def _logs(world: World, rng: np.random.Generator, *, changed: bool) -> dict[str, Logs]:
    """Give ln of all metrics of the three variants in all rounds that there may be."""
    found = {}
    luck = rng.normal(0, world.luck) if world.luck else 0.0
    for metric, sd in NOISES[world.noise].items():
        logs = rng.normal(0, sd, (3, MEASURE.max_rounds))
        worse = log1p(world.change) if changed else 0.0
        worse = log1p(DEFAULT_TOLERANCES[metric]) if world.at_margin else worse
        logs[1] += world.baseline_again
        worse += luck
        logs[2] += worse if METRICS[metric].metric.better == "lower" else -worse
        found[metric] = logs
    return found


def _until_answered(logs: dict[str, Logs], endpoint: str, endpoints: int) -> list[MeasuredClaim]:
    claims: list[MeasuredClaim] = []
    for n in range(MEASURE.min_rounds, MEASURE.max_rounds + 1):
        claims = [
            MeasuredClaim(
                endpoint,
                METRICS[metric],
                DEFAULT_TOLERANCES[metric],
                d=head[:n] - (baseline[:n] + again[:n]) / 2,
                again=again[:n] - baseline[:n],
            )
            for metric, (baseline, again, head) in logs.items()
        ]
        answers = answer_claims(claims, MEASURE, len(claims) * endpoints)
        if gate_answer([it.answer for it in answers]) is not GateAnswer.INCONCLUSIVE:
            break
    return claims


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("--gates", type=count, default=1_000, help="gates in each row (1000)")
    made.add_argument("--confirm", action="store_true", help="gates that measure failures twice")
    return made


def work(options: Namespace, console: Console) -> None:
    """Simulate and print the table."""
    if options.confirm:
        console.print(confirming(options.gates))
        return
    made = Table(title=f"{options.gates} gates a row, tolerances 5, 5 and 25%, with 95% CIs")
    for heading in ("machine", "endpoints", "more CPU"):
        made.add_column(heading)
    for heading in ("pass", "fail", "inconclusive", "rounds", "wrong endpoint"):
        made.add_column(heading, justify="right")
    for noise in NOISES:
        for endpoints in ENDPOINTS:
            for change in CHANGES:
                ended = list(gates(World(change, noise, endpoints), options.gates))
                made.add_row(noise, str(endpoints), f"{change:.0%}", *cells(ended))
    console.print(made)


def confirming(gates_a_row: int) -> Table:
    """Give the table of gates whose failures are measured again; restless machine, 3 endpoints."""
    made = Table(title=f"{gates_a_row} gates a row, restless machine, 3 endpoints")
    for heading in ("builds' luck", "more CPU", "fail", "fail with --confirm"):
        made.add_column(heading, justify="right")
    for luck in LUCKS:
        for change in CONFIRMED_CHANGES:
            ended = list(gates(World(change, "restless", 3, luck=luck), gates_a_row))
            fails = sum(gate.answer is GateAnswer.FAIL for gate in ended) / len(ended)
            confirmed = sum(gate.confirmed for gate in ended) / len(ended)
            made.add_row(f"±{luck:.0%}", f"{change:.0%}", f"{fails:.1%}", f"{confirmed:.1%}")
    return made


def cells(ended: list[Gate]) -> list[str]:
    """Count how gates ended."""
    answers = [gate.answer for gate in ended]
    shares = [
        share_words(answers.count(answer), len(ended))
        for answer in (GateAnswer.PASS, GateAnswer.FAIL, GateAnswer.INCONCLUSIVE)
    ]
    rounds = fmean(gate.rounds for gate in ended)
    wrong = sum(bool(gate.named - {"0"}) for gate in ended)
    return [*shares, f"{rounds:.1f}", share_words(wrong, len(ended))]


if __name__ == "__main__":
    sys.exit(script().run(work))
