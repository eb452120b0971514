"""Change points are those of the least cost, whatever is cheaper to look at."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from webdyno.statistics.interval import Logs
from webdyno.statistics.steady import change_points


@pytest.mark.parametrize("fewest", [1, 2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_they_are_those_of_an_exhaustive_search(fewest: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, 3)
    values = rng.normal(np.repeat([0.0, rng.normal(0, 4), 1.0], lengths), 1)
    penalty = float(rng.uniform(0.5, 8))

    def cost(cuts: list[int]) -> float:
        parts = (values[a:b] for a, b in pairwise([0, *cuts, len(values)]))
        return penalty * len(cuts) + sum(float(((p - p.mean()) ** 2).sum()) for p in parts)

    found = change_points(values, penalty, fewest)
    best = min(divisions(len(values), fewest), key=cost, default=[])
    assert cost(found) == pytest.approx(cost(best))
    assert all(b - a >= fewest for a, b in pairwise([0, *found, len(values)])) or not found


def divisions(length: int, fewest: int, begin: int = 0) -> Iterator[list[int]]:
    """All ways to cut a series into parts of so many values or more."""
    if length - begin >= fewest:
        yield []
    for cut in range(begin + fewest, length - fewest + 1):
        for rest in divisions(length, fewest, cut):
            yield [cut, *rest]


def test_levels_begin_where_they_were_planted() -> None:
    rng = np.random.default_rng(8)
    values: Logs = np.concatenate([rng.normal(level, 1, 12) for level in (0, 6, 1)])
    assert change_points(values, 20.0) == [12, 24]
    assert change_points(values, 20.0, fewest=20) == []
