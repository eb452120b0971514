"""A history's levels: what changed is found where it changed, and luck seldom is."""

import numpy as np
import pytest

from evidence.histories import history_of
from webdyno.history import FEWEST_IN_ALL, RISK, curves_of, level_starts

SD = 0.01


def starts(seed: int, gates: int, change: float = 0.0, at: int = 0, curves: int = 1) -> list[int]:
    logs = np.random.default_rng(seed).normal(0, SD, gates)
    logs[at:] += np.log1p(change)
    return level_starts(logs, RISK / curves)


@pytest.mark.parametrize("gates", [6, 12, 40])
@pytest.mark.parametrize("curves", [1, 3])
def test_a_history_without_a_change_seldom_shows_one(gates: int, curves: int) -> None:
    how_many = 400
    false = sum(
        any(len(starts(curves * seed + n, gates, curves=curves)) > 1 for n in range(curves))
        for seed in range(how_many)
    )
    assert false / how_many <= 0.05 + 2 * (0.05 * 0.95 / how_many) ** 0.5


@pytest.mark.parametrize(("change", "at"), [(0.05, 20), (-0.05, 20), (0.1, 3), (0.1, 37)])
def test_a_change_is_found_where_it_was(change: float, at: int) -> None:
    found = [starts(seed, 40, change, at) for seed in range(50)]
    assert sum(it == [0, at] for it in found) >= 45
    assert all(any(abs(start - at) <= 1 for start in it) for it in found)


def test_one_odd_gate_is_no_change() -> None:
    logs = np.random.default_rng(3).normal(0, SD, 30)
    logs[12] += 0.1
    assert level_starts(logs, RISK) == [0]


def test_few_gates_and_equal_ones_have_one_level() -> None:
    assert level_starts(np.array([0.0] * (FEWEST_IN_ALL - 1)), RISK) == [0]
    assert level_starts(np.zeros(50), RISK) == [0]
    assert level_starts(np.array([0.0, 0.0, 0.0, 5.0, 5.0]), RISK) == [0]


def test_each_curve_has_its_levels_with_the_change_between() -> None:
    risen = [1.0, 1.01, 0.99, 1.0, 1.2, 1.21, 1.19, 1.2]
    history = history_of({("/a", "server_cpu_us"): risen, ("/b", "throughput_rps"): [0.98] * 8})
    first, second = curves_of(history)
    assert [level.gates for level in first.levels] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    change = first.levels[1].change
    assert change is not None
    assert 1.17 < change.low < 1.2 < change.high < 1.23
    assert first.levels[0].ratio.low < 1 < first.levels[0].ratio.high
    (level,) = second.levels
    assert level.change is None
    assert level.ratio.estimate == pytest.approx(0.98)


def test_an_endpoint_that_came_later_has_its_own_places() -> None:
    history = history_of({("/", "server_cpu_us"): [1.0] * 9})
    late = history_of({("/new", "server_cpu_us"): [1.1] * 2})
    both = [*history, *late]
    assert [curve.levels[0].gates for curve in curves_of(both)] == [[*range(9)], [9, 10]]
