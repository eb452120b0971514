"""A history of gates: when and by how much what they compared with one baseline changed.

Its file has a gate a line. The levels that its ratios lie around are those of least squares where
each change has its price: what the best change of a history without any gains by luck in 5% of
cases, all curves together, which is known from histories that are drawn. Noise is the mean squared
difference of neighbors (von Neumann, "Distribution of the ratio of the mean square successive
difference to the variance", Annals of Mathematical Statistics 1941) but for the largest, which may
be a change.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import AwareDatetime, Field, ValidationError, model_validator

from webdyno.config.reading import first_fault
from webdyno.core.base import ENDLESS, Amount, Interval, Model
from webdyno.core.errors import UserError
from webdyno.core.files import append_text, make_folder, read_named, writing
from webdyno.core.format import is_useful
from webdyno.core.limits import GateJudgement
from webdyno.core.metrics import METRICS, MetricName
from webdyno.core.testbed import Machine
from webdyno.statistics.interval import TINY, Logs, estimate, welch
from webdyno.statistics.steady import change_points

COMMIT = re.compile(r"\((?P<commit>[0-9a-f]{10,}( with changes)?)\)$")
UNTOLD = {"invalid", "not asked"}
"""Answers of claims whose ratio says nothing of head."""
MOST_BYTES = 16 * 2**20

RISK = 0.05
CONFIDENCE = 0.95
FEWEST = 3
"""Gates of a level: fewer could be luck of a day."""
FEWEST_IN_ALL = 2 * FEWEST
SPENT = 0.75
"""Share of the risk that single changes have; the rest is for several that pay together
(tests/history/test_levels.py)."""
DRAWN, SEED = 20_000, 1
LONGEST_DRAWN = 200
"""Gates of a history that is drawn; longer ones count as several of them."""


class PastRatio(Model):
    """Head ÷ reference: one metric of one endpoint."""

    endpoint: str
    metric: MetricName
    ratio: Interval

    @model_validator(mode="after")
    def _is_a_ratio(self) -> Self:
        ends = (self.ratio.low, self.ratio.estimate, self.ratio.high)
        if not all(1 / ENDLESS < end < ENDLESS for end in ends) or self.ratio.low > self.ratio.high:
            raise ValueError("ratio should be above 0 and finite, its low end below the high one")
        return self


class PastGate(Model):
    """A gate, as the history keeps it."""

    format: Literal[1] = 1
    measured_at: AwareDatetime
    reference: str
    """The gate's baseline, such as `v1.2 (1a2b3c4d5e)`."""
    head: str
    machine: Machine
    rate_rps: Amount | None = None
    """The arrival rate; None in a closed loop."""
    ratios: list[PastRatio] = Field(min_length=1)

    @property
    def commit(self) -> str:
        """The commit that was measured, or the name of what has none."""
        return commit_in(self.head)


def commit_in(name: str) -> str:
    """Return the commit that a name of a gate's variant holds, or the name itself."""
    match = COMMIT.search(name)
    return match["commit"] if match else name


def past_gate(gate: GateJudgement, measured_at: AwareDatetime) -> PastGate | None:
    """Return what a history keeps of a gate; None where nothing was measured that it could keep."""
    ratios = []
    for claim in gate.claims:
        if claim.worse and claim.answer not in UNTOLD and is_useful(claim.worse):
            lower_is_better = METRICS[claim.metric].metric.better == "lower"
            ratio = claim.worse if lower_is_better else claim.worse.inverse()
            ratios.append(PastRatio(endpoint=claim.endpoint, metric=claim.metric, ratio=ratio))
    if gate.machine is None or not ratios:
        return None
    return PastGate(
        measured_at=measured_at,
        reference=gate.baseline,
        head=gate.head,
        machine=gate.machine,
        rate_rps=gate.rate_rps,
        ratios=ratios,
    )


class Plateau(Model):
    """Gates that follow each other, whose ratios lie around the same value."""

    gates: list[int]
    """Their places in the history."""
    ratio: Interval
    """The mean of their ratios."""
    change: Interval | None
    """This level ÷ the one before; None of the first."""


class Curve(Model):
    """One metric of one endpoint, gate after gate."""

    endpoint: str
    metric: str
    levels: list[Plateau]


def read_history(file: Path, place: str = "") -> list[PastGate]:
    """Return the gates of a file, the earliest first; raise UserError for what is no history.

    Messages begin with a place, such as a flag.
    """
    gates = []
    for number, line in enumerate(read_named(file, MOST_BYTES, place).splitlines(), 1):
        if not line.strip():
            continue
        try:
            gates.append(PastGate.model_validate_json(line))
        except ValidationError as error:
            raise UserError(
                f"{file}:{number}: is no gate that webdyno added to a history: {first_fault(error)}"
            ) from None
    if not gates:
        raise UserError(f"{file}: holds no gate yet; webdyno gate --history {file} adds one")
    for number, gate in enumerate(gates[1:], 2):
        _demand_same_reference(gates[0], gate.reference, f"{file}, gate {number}")
    return sorted(gates, key=lambda gate: gate.measured_at)


def check_history(file: Path, reference: str, flag: str) -> None:
    """Raise UserError where a gate against this reference couldn't be added to a file."""
    if _has_gates(file):
        _demand_same_reference(read_history(file, flag)[0], reference, f"{flag} {file}")


def check_rate(file: Path, rate_rps: float | None, flag: str) -> None:
    """Raise UserError where the gates of a file were measured at another arrival rate."""
    if not _has_gates(file):
        return
    known_rps = read_history(file, flag)[0].rate_rps
    if known_rps != rate_rps:
        raise UserError(
            f"{flag} {file}: this gate is {_at_rate(rate_rps)}, and the history "
            f"{_at_rate(known_rps)}; keep a file for each rate"
        )


def _has_gates(file: Path) -> bool:
    return file.exists() and not (file.is_file() and file.stat().st_size == 0)


def _at_rate(rate_rps: float | None) -> str:
    return f"at {rate_rps:,g} requests/s" if rate_rps is not None else "at full speed"


def add_to_history(file: Path, gate: GateJudgement) -> bool:
    """Add a gate's ratios as a line, and return whether it has any."""
    past = past_gate(gate, datetime.now(UTC))
    if past is None:
        return False
    with writing(file):
        make_folder(file.parent)
    append_text(file, past.model_dump_json() + "\n")
    return True


def _demand_same_reference(first: PastGate, reference: str, place: str) -> None:
    if commit_in(reference) != commit_in(first.reference):
        raise UserError(
            f"{place}: was compared with {reference}, and the history with {first.reference}; "
            "keep a file for each baseline"
        )


def curves_of(history: Sequence[PastGate]) -> list[Curve]:
    """Return each metric of each endpoint with its levels."""
    levels: dict[tuple[str, str], dict[int, Interval]] = {}
    for place, gate in enumerate(history):
        for past in gate.ratios:
            levels.setdefault((past.endpoint, past.metric), {})[place] = past.ratio
    risk = RISK / len(levels)
    return [
        Curve(endpoint=endpoint, metric=metric, levels=list(_levels(ratios, risk)))
        for (endpoint, metric), ratios in levels.items()
    ]


def _levels(ratios: dict[int, Interval], risk: float) -> Iterator[Plateau]:
    places = list(ratios)
    logs = np.log([ratio.estimate for ratio in ratios.values()])
    before: Logs | None = None
    for start, end in pairwise([*level_starts(logs, risk), len(logs)]):
        level = logs[start:end]
        mean = estimate(level, CONFIDENCE).ratio(CONFIDENCE) if len(level) > 1 else None
        change = None if before is None else welch(level, before, CONFIDENCE).ratio(CONFIDENCE)
        yield Plateau(gates=places[start:end], ratio=mean or ratios[places[0]], change=change)
        before = level


def level_starts(logs: Logs, risk: float) -> list[int]:
    """Return the places at which levels begin, the first being 0."""
    if len(logs) < FEWEST_IN_ALL:
        return [0]
    price = max(float(_noise(logs)), TINY) * _luckiest_gain(len(logs), risk)
    return [0, *change_points(logs, price, FEWEST)]


def _noise(logs: Logs) -> Logs:
    """Return the mean squared difference of neighbors but for the largest, of each row."""
    squares = np.diff(logs) ** 2
    left = squares.sum(axis=-1) - squares.max(axis=-1)
    return np.asarray(left / (squares.shape[-1] - 1))


@cache
def _luckiest_gain(gates: int, risk: float) -> float:
    """Return the gain, in units of the noise, that the best change exceeds by luck so often."""
    drawn = min(gates, LONGEST_DRAWN)
    logs = np.random.default_rng(SEED).standard_normal((DRAWN, drawn))
    before = np.arange(FEWEST, drawn - FEWEST + 1)
    sums = np.cumsum(logs - logs.mean(axis=-1, keepdims=True), axis=-1)[..., before - 1]
    best = (sums**2 * drawn / (before * (drawn - before))).max(axis=-1)  # in sum of squares
    return float(np.quantile(best / _noise(logs), 1 - SPENT * risk * drawn / gates))
