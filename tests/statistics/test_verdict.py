"""From an interval to one of the verdicts."""

from math import log, log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.judgement import Verdict
from webdyno.statistics.interval import Estimate
from webdyno.statistics.verdict import Ruling, VerdictRule, answer

HIGHER = VerdictRule(better="higher", delta=0.02, alpha=0.05, fewest_rounds=6)
LOWER = VerdictRule(better="lower", delta=0.02, alpha=0.05, fewest_rounds=6)


def interval(low: float, high: float) -> Estimate:
    """An estimate from the ends of the interval of the ratio."""
    return Estimate(log(low), (log(low) + log(high)) / 2, log(high), "t")


def verdict(low: float, high: float, p: float = 0.001, question: VerdictRule = HIGHER) -> Ruling:
    """The answer for ten rounds."""
    return answer(interval(low, high), p, 10, question)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.80, 2.00, Verdict.FASTER),
        (0.50, 0.60, Verdict.SLOWER),
        (1.01, 1.09, Verdict.FASTER),
        (0.99, 1.01, Verdict.EQUIVALENT),
        (1.001, 1.019, Verdict.EQUIVALENT),
        (0.95, 1.05, Verdict.INCONCLUSIVE),
        (1.005, 1.025, Verdict.INCONCLUSIVE),
        (0.999, 1.10, Verdict.INCONCLUSIVE),
    ],
)
def test_the_place_of_the_interval_decides(low: float, high: float, expected: Verdict) -> None:
    assert verdict(low, high).verdict is expected


def test_less_is_faster_where_less_is_better() -> None:
    assert verdict(0.50, 0.60, question=LOWER).verdict is Verdict.FASTER
    assert verdict(1.80, 2.00, question=LOWER).verdict is Verdict.SLOWER


def test_equivalence_is_symmetric_in_the_ratio() -> None:
    assert verdict(1 / 1.0199, 1.0199).verdict is Verdict.EQUIVALENT
    assert verdict(0.9801, 1.0199).verdict is Verdict.INCONCLUSIVE


def test_the_exact_test_must_agree() -> None:
    found = verdict(1.03, 1.20, p=0.06)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "p = 0.06" in found.why
    assert "the least" not in found.why


def test_a_p_value_that_so_few_rounds_can_not_go_below_is_named_as_such() -> None:
    assert "p = 0.002, the minimum for 10 rounds" in verdict(3.0, 4.0, p=1 / 512).why


def test_too_few_rounds_decide_nothing() -> None:
    found = answer(interval(1.8, 2.0), 0.06, 5, HIGHER)
    assert (found.verdict, found.more_rounds) == (Verdict.INCONCLUSIVE, 1)
    assert answer(None, 1.0, 0, HIGHER).more_rounds == 6


def test_inconclusive_shows_how_many_rounds_are_needed() -> None:
    found = verdict(0.97, 1.03)
    assert found.more_rounds is not None
    assert 7 <= found.more_rounds <= 15


def test_too_close_to_the_limit_needs_more_than_can_be_foreseen() -> None:
    estimate = Estimate(log1p(0.02) - 0.05001, log1p(0.02) - 1e-5, log1p(0.02) + 0.04999, "t")
    assert answer(estimate, 0.5, 10, HIGHER).more_rounds is None


@given(
    centre=st.floats(-0.2, 0.2),
    half=st.floats(1e-4, 0.3),
    rounds=st.integers(6, 30),
    p=st.floats(0, 1),
)
def test_swapping_the_variants_turns_the_verdict_around(
    centre: float, half: float, rounds: int, p: float
) -> None:
    there = answer(Estimate(centre - half, centre, centre + half, "t"), p, rounds, HIGHER)
    back = answer(Estimate(-centre - half, -centre, -centre + half, "t"), p, rounds, HIGHER)
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert back.verdict is turned.get(there.verdict, there.verdict)
    assert back.more_rounds == there.more_rounds
    assert (there.more_rounds is None) or there.verdict is Verdict.INCONCLUSIVE
