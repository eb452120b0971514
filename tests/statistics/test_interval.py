"""Intervals and tests on log ratios, against scipy and against counting by hand."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from webdyno.statistics.interval import estimate, heavy_tailed, hodges_lehmann, sign_flip_p

logs = st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=2, max_size=10).map(np.array)
OUTLIER = np.array([0.010, 0.012, 0.008, 0.011, 0.009, 0.0105, 0.0095, 0.013, 0.007, 0.9])


@given(logs, st.sampled_from([0.9, 0.95, 0.99]))
def test_the_t_interval_is_scipys(d: np.typing.NDArray[np.float64], confidence: float) -> None:
    found = estimate(d, confidence)
    if found.method == "t":
        theirs = stats.ttest_1samp(d, 0.0).confidence_interval(confidence) if np.ptp(d) else None
        if theirs is not None:
            assert found.low == pytest.approx(theirs.low, abs=1e-9)
            assert found.high == pytest.approx(theirs.high, abs=1e-9)
    assert found.low <= found.centre <= found.high


@given(logs)
@settings(max_examples=60)
def test_the_sign_flip_p_is_what_counting_all_patterns_gives(
    d: np.typing.NDArray[np.float64],
) -> None:
    patterns = np.array(list(product([-1, 1], repeat=len(d))))
    sums = np.abs(patterns @ d)
    observed = abs(d.sum())
    assert sign_flip_p(d) == pytest.approx(np.mean(sums >= observed - 1e-9 * np.abs(d).sum()))


@pytest.mark.parametrize("rounds", [6, 17, 30, 40])
def test_rounds_that_all_agree_give_the_smallest_p(rounds: int) -> None:
    assert sign_flip_p(np.full(rounds, 0.01)) == pytest.approx(2.0 ** (1 - rounds))


def test_beyond_forty_rounds_p_comes_from_random_patterns_always_the_same() -> None:
    d = np.random.default_rng(1).normal(0.01, 0.05, 60)
    assert sign_flip_p(d) == sign_flip_p(d)
    assert sign_flip_p(d) == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue, abs=0.01)


def test_random_patterns_are_the_same_however_many_are_drawn_at_once() -> None:
    d = np.random.default_rng(2).normal(0.01, 0.05, 60)
    at_once = np.random.default_rng(0).choice([-1.0, 1.0], (50_000, 60))
    as_far = np.count_nonzero(np.abs(at_once @ d) >= abs(d.sum()) - 1e-9 * np.abs(d).sum())
    assert sign_flip_p(d) == (as_far + 1) / 50_001


def test_no_difference_at_all_has_p_one() -> None:
    assert sign_flip_p(np.zeros(8)) == 1
    assert sign_flip_p(np.array([0.1, -0.1] * 4)) == 1


def test_the_wilcoxon_interval_of_six_rounds_reaches_from_least_to_most() -> None:
    d = np.array([0.01, 0.05, 0.02, -0.03, 0.04, 0.07])
    found = hodges_lehmann(d, 0.95)
    assert (found.low, found.high) == (-0.03, 0.07)


@given(st.integers(6, 25), st.integers(0, 1000))
@settings(max_examples=50)
def test_the_wilcoxon_interval_holds_what_the_test_does_not_reject(n: int, seed: int) -> None:
    d = np.random.default_rng(seed).normal(0.02, 0.05, n)
    found = hodges_lehmann(d, 0.95)
    for edge, outward in ((found.low, -1), (found.high, 1)):
        inside = stats.wilcoxon(d - (edge - outward * 1e-9), method="exact").pvalue
        outside = stats.wilcoxon(d - (edge + outward * 1e-9), method="exact").pvalue
        assert inside > 0.05 >= outside


def test_one_round_far_out_does_not_carry_the_estimate_away() -> None:
    assert heavy_tailed(OUTLIER)
    found = estimate(OUTLIER, 0.95)
    assert found.method == "hodges-lehmann"
    assert found.centre == pytest.approx(0.0105, abs=0.001)
    assert found.low > 0


def test_with_too_few_rounds_for_wilcoxon_the_t_interval_is_kept() -> None:
    assert estimate(OUTLIER[-7:], 0.99).method == "t"


@given(st.integers(6, 60), st.integers(0, 10_000))
def test_heavy_tails_are_those_of_anscombe_and_glynn(n: int, seed: int) -> None:
    d = np.random.default_rng(seed).standard_t(2, n)
    with warnings.catch_warnings(action="ignore"):  # it warns of fewer than 20 values
        p = stats.kurtosistest(d, alternative="greater").pvalue
    assert heavy_tailed(d) == (p < 0.01)


def test_two_heaps_have_no_heavy_tails() -> None:
    assert not heavy_tailed(np.array([-1.0, 1.0] * 10))


def test_normal_ratios_are_seldom_taken_for_heavy_tailed() -> None:
    rng = np.random.default_rng(0)
    taken = sum(heavy_tailed(rng.normal(0, 0.05, 20)) for _ in range(2_000))
    assert taken / 2_000 <= 0.015


def test_equal_ratios_have_an_interval_of_no_width() -> None:
    found = estimate(np.full(6, 0.25), 0.95)
    assert (found.low, found.high, found.method) == (0.25, 0.25, "t")
