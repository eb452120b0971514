"""Whether a stack had warmed up, by its slots and by its warm-up."""

import re
from math import log

import pytest

from league.leagues import FIRST, judged, run_of, with_bursts, with_cold
from webdyno.league.judged import JudgedRun
from webdyno.league.warmth import why_cold

STACK = "express"
SPRING_BOOT = (894, 999, 1122, 1218, 1249, 1341, 1419, 1460, 1542, 1600)
"""Requests/s at database pages, of the last bursts that a league of 30 November 2026 gave it."""
AT_PLATEAU = (18_482, 25_552, 29_836, 29_661, 29_931, 30_045, 29_745, 30_353, 29_567, 30_607)
"""And at JSON, where it needed less."""


@pytest.mark.parametrize(("by_slot", "is_cold"), [(0.1, True), (0.005, False), (-0.05, False)])
def test_what_gets_faster_over_a_round_was_cold(by_slot: float, is_cold: bool) -> None:
    why = _why(judged(with_cold(run_of(FIRST), STACK, by_slot)))
    assert bool(re.search(r"rose by [\d.]+% within a round", why or "")) is is_cold


@pytest.mark.parametrize(
    ("bursts", "is_cold"),
    [
        pytest.param(SPRING_BOOT, True, id="its slots say nothing of a slow rise"),
        pytest.param(AT_PLATEAU, False, id="it rose steeply, and then no more"),
        pytest.param(SPRING_BOOT[:2], False, id="too few bursts say nothing"),
        pytest.param(AT_PLATEAU[::-1], False, id="it falls"),
        pytest.param([0.0] * 10, False, id="nothing was answered"),
    ],
)
def test_a_slow_rise_shows_in_the_last_bursts(bursts: list[float], is_cold: bool) -> None:
    shares = [each / max(*bursts, 1) for each in bursts]
    assert bool(_why(judged(with_bursts(run_of(FIRST), STACK, shares)))) is is_cold


def test_what_twice_as_much_warm_up_would_bring_is_said() -> None:
    shares = [1 + 0.2 * log(number) / log(2) for number in range(1, 41)]
    why = _why(judged(with_bursts(run_of(FIRST), STACK, [each / 3 for each in shares])))
    assert why
    (percent,) = re.findall(r"might make it ([\d.]+)% faster", why)
    assert float(percent) == pytest.approx(10, abs=3)


def test_a_single_round_says_nothing() -> None:
    shares = [each / SPRING_BOOT[-1] for each in SPRING_BOOT]
    (run,) = judged(with_bursts(run_of(FIRST, rounds=1), STACK, shares))
    assert why_cold(run.data, STACK) is None


def _why(runs: list[JudgedRun]) -> str | None:
    (run,) = runs
    others = set(run.stacks) - {STACK}
    assert not others & set(run.cold)
    return run.cold.get(STACK)
