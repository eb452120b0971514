"""Whether a stack had warmed up, by the bursts of its warm-up."""

import re
from collections.abc import Callable, Sequence
from math import exp, log2
from random import Random

import pytest

from builders import SimulatedRun
from league.leagues import FIRST, judged, run_of, with_bursts, with_variant
from webdyno.core.records import SlotRecord
from webdyno.league.judged import cold_among, newest_of, why_cold

STACK = "express"
ROUNDS = 6
SPRING_BOOT = (
    *(120, 150, 313, 399, 403, 470, 477, 534, 546, 646, 660, 717, 775, 894, 999, 1122, 1218, 1249),
    *(1341, 1419, 1460, 1542, 1412),
)
"""Requests/s with a database, in the bursts of 0.5 s that a league of 30 November 2026 gave it."""
AT_PLATEAU = (
    *(782, 1074, 1283, 1380, 1646, 1945, 2336, 3747, 5955, 8750, 9842, 11137, 12536, 14401, 16523),
    *(18482, 21553, 23737, 25552, 27637, 28893, 29836, 29661, 29931, 30045, 29745, 30353, 31272),
    *(29567, 30607),
)
"""And with JSON, where it reached what it can."""


@pytest.mark.parametrize(
    ("rates", "is_cold"),
    [
        pytest.param(SPRING_BOOT, True, id="its slots show nothing of a slow rise"),
        pytest.param(AT_PLATEAU, False, id="it rose steeply, and then no more"),
        pytest.param(SPRING_BOOT[-5:], False, id="too few bursts say nothing"),
        pytest.param(AT_PLATEAU[::-1], False, id="it falls"),
        pytest.param([0.0] * 10, False, id="nothing was answered"),
    ],
)
def test_a_slow_rise_shows_in_the_last_bursts(rates: list[float], is_cold: bool) -> None:
    assert bool(_why(with_bursts(_run(), STACK, _noisy(rates)))) is is_cold


def test_where_the_pilot_chose_the_bursts_it_ended_them_when_they_rose_no_more() -> None:
    assert _why(with_bursts(_run(), STACK, _noisy(AT_PLATEAU[:22]), by_pilot=True)) is None


def test_what_twice_as_much_warm_up_would_bring_is_said() -> None:
    def rates(_: int) -> list[float]:
        return [1000 * (1 + 0.2 * log2(number)) for number in range(1, 41)]

    why = _why(with_bursts(_run(), STACK, rates))
    assert why
    (percent,) = re.findall(r"might make it ([\d.]+)% faster", why)
    assert float(percent) == pytest.approx(10, abs=3)


def test_one_stalled_burst_doesnt_make_a_stack_cold() -> None:
    def rates(number: int) -> list[float]:
        return [1000.0] * 12 + [500.0 if number == 3 else 1000.0] + [1000.0] * 2

    assert _why(with_bursts(_run(), STACK, rates)) is None


def test_noise_seldom_makes_a_stack_cold() -> None:
    runs = [with_bursts(_run(), STACK, _noisy([1000.0] * 15, seed)) for seed in range(200)]
    assert sum(bool(why_cold(run.data, STACK)) for run in runs) <= 20


def test_a_single_round_says_nothing() -> None:
    assert why_cold(with_bursts(_run(rounds=1), STACK, _noisy(SPRING_BOOT)).data, STACK) is None


def test_at_a_common_rate_bursts_say_nothing_of_throughput() -> None:
    def at_rate(record: object) -> object:
        if isinstance(record, SlotRecord) and record.variant == STACK:
            return record.replace(load=record.load.replace(loop="open", offered_rps=1000.0))
        return record

    run = with_bursts(_run(), STACK, _noisy(SPRING_BOOT))
    open_loop = SimulatedRun(run.head, [at_rate(record) for record in run.records])  # type: ignore[misc]
    assert why_cold(open_loop.data, STACK) is None


def test_what_was_cold_after_a_longer_warm_up_was_cold_before() -> None:
    short, long = judged(_run(seed=2), with_bursts(_run(), STACK, _noisy(SPRING_BOOT)))
    assert not short.cold
    assert cold_among(short, [long]) == {STACK}
    assert newest_of([long, short])[STACK] is long
    (other,) = judged(with_variant(_run(seed=2), STACK, settings={"workers": 3}))
    assert not cold_among(other, [long]), "it was set up otherwise"


def _run(*, rounds: int = ROUNDS, seed: int = 1) -> SimulatedRun:
    return run_of(FIRST, rounds=rounds, seed=seed)


def _noisy(rates: Sequence[float], seed: int = 1) -> Callable[[int], list[float]]:
    """Return what a round's bursts show of them."""
    random = Random(seed)
    return lambda _: [rate * exp(random.gauss(0, 0.05)) for rate in rates]


def _why(run: SimulatedRun) -> str | None:
    (alone,) = judged(run)
    assert set(alone.cold) <= {STACK}
    return alone.cold.get(STACK)
