"""What bursts are worth, from simulated looks whose truth is known."""

import numpy as np
import pytest

from builders import pilot_record
from webdyno.measure.pilot_looks import WINDOW_S
from webdyno.planning.pilot import HOW, bursts_may_end, gain, in_bursts, looked_s, worth
from webdyno.statistics.interval import Logs
from webdyno.statistics.steady import Series

WINDOWS = 40
LOOKS = 300


def noise(rng: np.random.Generator, memory: float) -> Logs:
    """An AR(1) of 3% whose neighbours are alike by so much, as a busy server's throughput is."""
    logs = rng.normal(0, 0.03, WINDOWS)
    for at in range(1, WINDOWS):
        logs[at] = memory * logs[at - 1] + (1 - memory**2) ** 0.5 * logs[at]
    return logs


def gains(truth: float, memory: float) -> list[float]:
    rng = np.random.default_rng(1)

    def look(level: float) -> Series:
        return Series(WINDOW_S, np.log(5_000) + level + noise(rng, memory))

    return [gain(look(truth), [look(0.0), look(0.0)]) for _ in range(LOOKS)]


@pytest.mark.parametrize("memory", [0.0, 0.7])
def test_what_pauses_change_is_seen_and_what_they_do_not_is_not(memory: float) -> None:
    assert np.mean([it > 0 for it in gains(0.0, memory)]) < 0.02
    seen = [it for it in gains(0.12, memory) if it]
    assert len(seen) > 0.9 * LOOKS
    assert np.mean(seen) == pytest.approx(0.12, abs=0.02)


def test_it_has_to_be_faster_than_after_every_load_without_a_break() -> None:
    rng = np.random.default_rng(2)
    after, slow, fast = (
        Series(WINDOW_S, np.log(rate) + noise(rng, 0.0)) for rate in (8_500, 7_850, 8_500)
    )
    assert gain(after, [slow]) == pytest.approx(np.log(8_500 / 7_850), abs=0.02)
    assert gain(after, [slow, fast]) == 0
    assert gain(slow, [after]) == 0
    assert gain(after, []) == 0


def test_who_answers_seldom_is_looked_at_for_longer() -> None:
    """A second of 160 responses was too short to see that they had become twice as many."""
    assert looked_s(8_000.0, 1.0) == 1.0
    assert looked_s(160.0, 1.0) == pytest.approx(250 / 160)
    assert looked_s(1.0, 1.0) == looked_s(0.0, 1.0) == 4.0


def test_a_few_windows_report_nothing() -> None:
    few, many = Series(0.25, np.full(4, 9.0)), Series(0.25, np.full(4, 8.0))
    assert gain(few, [many]) == 0


@pytest.mark.parametrize(
    ("rates", "rests", "enough"),
    [
        ([], False, False),
        ([100.0], True, False),
        ([100.0, 150.0], True, False),
        ([100.0, 150.0, 151.0], True, True),
        ([100.0, 150.0, 151.0], False, False),
    ],
)
def test_bursts_end_where_the_servers_rest_and_nothing_is_won(
    rates: list[float], rests: bool, enough: bool
) -> None:
    assert bursts_may_end(rates, rests=rests) is enough


def look(rate: float, cost_us: float, seed: int) -> list[Series]:
    rng = np.random.default_rng(seed)
    return [Series(WINDOW_S, np.log(it) + noise(rng, 0.0)) for it in (rate, cost_us)]


def test_cpu_time_per_request_has_the_last_word() -> None:
    """A neighbour that goes away makes the throughput higher as well."""
    before = [look(7_850, 127, 1), look(7_850, 127, 2)]
    assert worth(look(8_500, 117, 3), before).startswith(f"{HOW}: 8")
    assert "faster than under continuous load" in worth(look(8_500, 117, 3), before)
    assert worth(look(8_500, 127, 3), before) == ""
    assert "less CPU per request" in worth(look(7_850, 117, 3), before)
    rates = [it[:1] for it in before]
    assert "faster" in worth(look(8_500, 117, 3)[:1], rates)
    assert worth(look(7_850, 127, 3), before) == ""


def test_a_pilot_says_how_it_warms_up_and_why() -> None:
    said = f"{HOW}: 8.3% faster than under continuous load"
    steady = Series(WINDOW_S, 9 + noise(np.random.default_rng(3), 0.0))
    found = in_bursts(pilot_record("java").found, 3, [steady], said)
    assert found.in_bursts
    assert found.steady
    assert found.warmup_s == 1.5
    assert found.why.startswith(f"{said}; under continuous load steady from")
    rising = Series(WINDOW_S, steady.logs + np.linspace(0, 0.5, WINDOWS))
    assert not in_bursts(found, 3, [rising], said).steady
