"""One-sided questions: their words, and how often answers are wrong when asked every round."""

from math import exp, log, sqrt
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulations.one_sided import runs
from variants import further
from webdyno.core.base import Interval
from webdyno.questions.compare.settings import tolerance_of
from webdyno.statistics.bounds import Bound
from webdyno.statistics.interval import estimate
from webdyno.statistics.verdict import (
    OneSided,
    ask_by_sampling,
    ask_within,
    look_level,
    ruled_out,
)

RUNS = 4_000


@pytest.mark.parametrize("most", [6, 12, 30])
@pytest.mark.parametrize("tolerance", [0.0, further(0.05)])
def test_looking_after_every_round_is_wrong_in_at_most_five_per_cent(
    tolerance: float, most: int
) -> None:
    """At the margin itself, where both answers are wrong at worst."""
    question = OneSided(tolerance, "higher", most_rounds=most)
    ended = runs(question.margin, 0.03, question, RUNS, seed=most)
    allowed = 0.05 + 2 * sqrt(0.05 * 0.95 / RUNS)
    assert 0.03 <= ended.yes <= allowed
    assert 0.03 <= ended.no <= allowed


def test_answers_come_early() -> None:
    faster = OneSided(0.0, "higher", most_rounds=30)
    ended = runs(log(1.05), 0.02, faster, RUNS)
    assert ended.yes > 0.99
    assert ended.no == 0
    assert ended.rounds < 7
    tolerant = OneSided(0.05, "higher", most_rounds=30)
    ended = runs(0.0, 0.03, tolerant, RUNS)
    assert ended.yes > 0.99
    assert ended.no < 0.001
    assert ended.rounds < 9


def test_bounds_hold_wherever_a_run_stops() -> None:
    question = OneSided(0.0, "higher", most_rounds=20)
    rng = np.random.default_rng(3)
    low_held = high_held = 0
    for _ in range(RUNS):
        d = rng.normal(0.02, 0.03, 20)
        for n in range(6, 21):
            found = ask_by_sampling(d[:n], question)
            if found is not None and found.answer != "inconclusive":
                break
        assert found is not None
        low_held += log(found.at_least) <= 0.02
        high_held += log(found.at_most) >= 0.02
    assert low_held / RUNS >= 0.95 - 2 * sqrt(0.05 * 0.95 / RUNS)
    assert high_held / RUNS >= 0.95 - 2 * sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("gain", [-0.3, 0.0, 0.3])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_what_was_measured_lies_in_what_is_sure(
    gain: float, better: Literal["higher", "lower"]
) -> None:
    """Bounds widen what is sure to both sides, whatever the answer."""
    d = np.random.default_rng(0).normal(gain, 0.001, 6) * (1 if better == "higher" else -1)
    found = ask_within(d, Bound("all", up=0.02, down=0.01), OneSided(0.05, better, 6))
    assert found is not None
    assert found.answer == ("no" if gain < -0.05 else "yes")
    assert found.at_least < exp(gain) < found.at_most
    assert found.at_most / found.at_least > exp(0.03)


def test_levels_of_a_single_look_are_the_whole_risk() -> None:
    assert look_level(6, fewest=6, most=6) == pytest.approx(0.046, abs=2e-4)
    levels = [look_level(n, 6, 30) for n in range(6, 31)]
    assert sum(levels) > 0.046
    assert max(levels) < 0.046


def test_lower_is_better_for_times_and_costs() -> None:
    d = np.log([0.9, 0.91, 0.89, 0.9, 0.9, 0.905])
    costs = ask_by_sampling(d, OneSided(0.0, "lower", most_rounds=30))
    rates = ask_by_sampling(d, OneSided(0.0, "higher", most_rounds=30))
    assert costs is not None
    assert rates is not None
    assert (costs.answer, rates.answer) == ("yes", "no")
    assert costs.why == "a gain is certain"
    assert ask_by_sampling(d[:5], OneSided(0.0, "lower", most_rounds=30)) is None


@pytest.mark.parametrize(
    ("better", "ratio", "why"),
    [
        ("higher", 1.0, "a fall of more than 4.8% is ruled out"),
        ("higher", 0.8, "a fall of more than 4.8% is certain"),
        ("lower", 1.0, "a rise of more than 5% is ruled out"),
        ("lower", 1.2, "a rise of more than 5% is certain"),
    ],
)
def test_what_is_tolerated_is_said_as_a_fall_or_a_rise(
    better: Literal["higher", "lower"], ratio: float, why: str
) -> None:
    found = ask_by_sampling(np.full(6, log(ratio)), OneSided(0.05, better, most_rounds=30))
    assert found is not None
    assert found.why == why


def test_ratios_without_noise_are_answered() -> None:
    found = ask_by_sampling(np.full(6, log(0.97)), OneSided(0.05, "higher", most_rounds=30))
    assert found is not None
    assert found.answer == "yes"
    assert found.at_least == pytest.approx(0.97)


@pytest.mark.parametrize(
    ("text", "tolerance"), [("faster", 0), ("not-slower-by 5%", 0.05), ("not-slower-by 0.1", 0.1)]
)
def test_questions_are_read(text: str, tolerance: float) -> None:
    assert tolerance_of(text) == pytest.approx(tolerance)


@pytest.mark.parametrize("text", ["slower", "faster 5%", "not-slower-by", "not-slower-by -5%", ""])
def test_other_questions_are_mistakes(text: str) -> None:
    with pytest.raises(ValueError, match="is no question; there are two"):
        tolerance_of(text)


def test_an_interval_says_what_it_excludes() -> None:
    for low, high, ends in (
        (0.98, 1.0334, "−2% and +3.4%"),
        (0.9, 1.0, "−10% and 0%"),
        (1.0, 1.0, "0% and 0%"),
        (1.024, 1.061, "+2.4% and +6.1%"),
    ):
        interval = Interval(low=low, estimate=1.0, high=high)
        assert ruled_out(interval) == f"the difference is between {ends}"


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=20))
@example([0.0, 2.2250738585e-313])
def test_what_is_said_to_be_excluded_is(values: list[float]) -> None:
    found = estimate(np.array(values), 0.95).ratio(0.95)
    assert found
    words = ruled_out(found).replace("−", "-").split()
    said = [float(word.rstrip("%")) / 100 for word in (words[4], words[6])]
    for share, end in zip(said, (found.low - 1, found.high - 1), strict=True):
        assert abs(share) >= abs(end) * (1 - 1e-9) - 1e-9
        assert abs(share) <= abs(end) * 1.11 + 1e-6
