"""Where a history changed: the levels that ratios to one baseline lie around, gate after gate.

The levels are those of least squares where each change has its price. That is what the best change
of a history without any gains by luck in 5% of cases, all curves together; it is known from
histories that are drawn. Noise is the mean squared difference of neighbors (von Neumann,
"Distribution of the ratio of the mean square successive difference to the variance", Annals of
Mathematical Statistics 1941) but for the largest, which may be a change.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from webdyno.core.base import Interval
from webdyno.history.gates import Curve, PastGate, Plateau
from webdyno.statistics.change_points import change_points
from webdyno.statistics.interval import TINY, Logs, estimate, welch

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


def curves_of(history: Sequence[PastGate]) -> list[Curve]:
    """Give each metric of each endpoint with its levels."""
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
    """Give the places at which levels begin, the first being 0."""
    if len(logs) < FEWEST_IN_ALL:
        return [0]
    price = max(float(_noise(logs)), TINY) * _luckiest_gain(len(logs), risk)
    return [0, *change_points(logs, price, FEWEST)]


def _noise(logs: Logs) -> Logs:
    """Give the mean squared difference of neighbors but for the largest, of each row."""
    squares = np.diff(logs) ** 2
    left = squares.sum(axis=-1) - squares.max(axis=-1)
    return np.asarray(left / (squares.shape[-1] - 1))


def _best_gain(logs: Logs) -> Logs:
    """Give by how much the best single change lowers the sum of squares, of each row."""
    gates = logs.shape[-1]
    before = np.arange(FEWEST, gates - FEWEST + 1)
    sums = np.cumsum(logs - logs.mean(axis=-1, keepdims=True), axis=-1)[..., before - 1]
    return np.asarray((sums**2 * gates / (before * (gates - before))).max(axis=-1))


@cache
def _luckiest_gain(gates: int, risk: float) -> float:
    """Give the gain, in units of the noise, that the best change exceeds by luck so often."""
    drawn = min(gates, LONGEST_DRAWN)
    logs = np.random.default_rng(SEED).standard_normal((DRAWN, drawn))
    return float(np.quantile(_best_gain(logs) / _noise(logs), 1 - SPENT * risk * drawn / gates))
