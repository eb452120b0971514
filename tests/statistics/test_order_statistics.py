"""Intervals of percentiles: the binomial bounds, and how often they hold the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.histogram import Histogram
from webdyno.statistics.interval import (
    exceeded_by_largest,
    quantile_interval,
    responses_for_interval,
)

ROUNDS = 2_000


def histogram(times_us: list[float]) -> Histogram:
    """Count times in buckets of a microsecond."""
    low, counts = np.unique(np.floor(times_us), return_counts=True)
    return Histogram(low=low, width=np.ones(len(low)), counts=counts)


def test_the_known_numbers_of_answers() -> None:
    assert exceeded_by_largest(0.99) == 299
    assert exceeded_by_largest(0.999) == 2_995
    assert responses_for_interval(0.99) == 368
    assert responses_for_interval(0.5) == 6


def test_ranks_as_in_tables() -> None:
    """The 95% interval of a median of ten goes from the second to the ninth: 97.9%."""
    found = quantile_interval(histogram([float(10 * i) for i in range(1, 11)]), 0.5)
    assert found is not None
    assert (found.low, found.high) == (20, 91)
    assert found.confidence == pytest.approx(0.9785, abs=1e-4)


@pytest.mark.parametrize(("quantile", "responses"), [(0.5, 40), (0.9, 200), (0.99, 1_000)])
def test_it_holds_the_truth_as_often_as_it_says(quantile: float, responses: int) -> None:
    rng = np.random.default_rng(0)
    truth = -1e6 * np.log(1 - quantile)
    held, certain = 0, 0.0
    for _ in range(ROUNDS):
        found = quantile_interval(histogram(list(rng.exponential(1e6, responses))), quantile)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        certain = found.confidence
    assert certain >= 0.95
    assert held / ROUNDS == pytest.approx(certain, abs=0.012)


def test_too_few_answers_say_only_what_they_say() -> None:
    few = quantile_interval(histogram([float(i) for i in range(299)]), 0.99)
    assert few is not None
    assert few.high is None
    assert few.says == "299 responses only say that p99 exceeds 291 µs"
    enough = quantile_interval(histogram([float(i) for i in range(368)]), 0.99)
    assert enough is not None
    assert enough.says == "p99 lies between 359 µs and 368 µs"
    fewest = quantile_interval(histogram([7.0]), 0.5)
    assert fewest is not None
    assert fewest.says == "1 response: too few for p50"
    assert quantile_interval(Histogram.decode(""), 0.5) is None


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=300),
    st.floats(0.01, 0.99),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_the_ends_enclose_the_estimate(
    times_us: list[float], quantile: float, confidence: float
) -> None:
    found = quantile_interval(histogram(times_us), quantile, confidence)
    assert found is not None
    assert found.confidence >= confidence
    assert found.low is None or found.low <= found.estimate
    assert found.high is None or found.estimate <= found.high
