"""What searches leave open widens the intervals of capacities and of their ratios, to one side."""

from math import log

import numpy as np
import pytest

from simulations.searches import Case, run_of, searched_in_rounds
from webdyno.comparison.comparison import compare_as_asked, variant_value
from webdyno.core.capacity import capacity_estimate
from webdyno.core.metrics import CAPACITY, METRICS, THROUGHPUT
from webdyno.evidence.log_ratios import resolution
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import estimate

SLOW = Case(1_000, 0.020)
ROUNDS = 6


@pytest.fixture(scope="module")
def data() -> PointData:
    rng = np.random.default_rng(1)
    searches = [searched_in_rounds(SLOW, rng, ROUNDS, deciding=1) for _ in range(2)]
    return run_of(SLOW.settings, searches)


def test_it_is_the_mean_of_the_searches(data: PointData) -> None:
    found = resolution(data, "a", METRICS[CAPACITY])
    searches = [
        capacity_estimate([slot.trial for slot in a_round.of("a") if slot.trial])
        for a_round in data.rounds
    ]
    assert found == pytest.approx(np.mean([each.bias for each in searches if each]))
    assert resolution(data, "a", METRICS[THROUGHPUT]) == 0


def test_a_capacity_may_be_lower(data: PointData) -> None:
    value = variant_value(data, "a", METRICS[CAPACITY])
    by_rounds = estimate(np.log(value.by_round), 0.95)
    open_below = resolution(data, "a", METRICS[CAPACITY])
    assert value.interval
    assert log(value.interval.high) == pytest.approx(by_rounds.high)
    assert log(value.interval.low) == pytest.approx(by_rounds.low - open_below)


def test_a_ratio_may_be_lower_or_higher(data: PointData) -> None:
    (found,) = compare_as_asked(data)
    by_rounds = estimate(np.log(found.by_round), 0.95)
    assert found.ratio
    assert log(found.ratio.low) < by_rounds.low
    assert log(found.ratio.high) > by_rounds.high
