"""Sweeps made to fit into a time: which levels stay."""

from collections.abc import Sequence
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from webdyno.model.experiment import Experiment, Level
from webdyno.run.budget import point_s, spread, thin_levels, thinned

POWERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
FACTORS = st.dictionaries(
    st.text("abc", min_size=1, max_size=2),
    st.lists(st.integers(), min_size=1, max_size=12, unique=True),
    max_size=3,
)


def test_the_middle_comes_first_then_the_ends() -> None:
    assert spread(1) == [0]
    assert spread(2) == [0, 1]
    assert spread(5) == [2, 4, 0, 1, 3]
    assert thin_levels({"connections": POWERS}, 3) == {"connections": [1, 16, 512]}
    assert thin_levels({"connections": POWERS}, 2) == {"connections": [16, 512]}


def test_levels_that_matter_come_before_all_others() -> None:
    factors: dict[str, Sequence[Level]] = {
        "generator": ["loadgen", "ab"],
        "connections": POWERS,
        "keepalive": ["always", "never"],
    }
    first: dict[str, Sequence[Level]] = {
        "keepalive": ["never"],
        "connections": [512, 2],
        "generator": ["loadgen", "ab"],
    }
    one: dict[str, list[Level]] = {
        "generator": ["loadgen"],
        "connections": [512],
        "keepalive": ["never"],
    }
    assert thin_levels(factors, 1, first) == one
    assert thin_levels(factors, 3, first) == one | {"connections": [2, 16, 512]}
    assert thin_levels(factors, 2, first) == one | {"connections": [2, 512]}
    assert thin_levels(factors, 4, first) == one | {
        "connections": [2, 512],
        "generator": ["loadgen", "ab"],
    }


def test_factors_take_turns_the_first_one_first() -> None:
    factors: dict[str, Sequence[Level]] = {
        "keepalive": ["always", "never"],
        "connections": POWERS,
    }
    assert thin_levels(factors, 3) == {"keepalive": ["always", "never"], "connections": [16]}
    assert thin_levels(factors, 7) == {
        "keepalive": ["always", "never"],
        "connections": [1, 16, 512],
    }


@given(st.integers(1, 300))
def test_every_level_has_its_turn_once(count: int) -> None:
    assert sorted(spread(count)) == list(range(count))


@given(FACTORS, st.integers(-1, 200))
def test_levels_are_thinned_as_little_as_possible(
    factors: dict[str, list[int]], most_points: int
) -> None:
    kept = thin_levels(factors, most_points)
    assert list(kept) == list(factors)
    points = prod(map(len, kept.values()))
    assert points <= max(most_points, 1)
    for key, levels in factors.items():
        assert [level for level in levels if level in kept[key]] == kept[key]
        one_more = points // len(kept[key]) * (len(kept[key]) + 1)
        assert len(kept[key]) == len(levels) or one_more > most_points


def test_a_budget_buys_points_and_all_of_it_buys_all() -> None:
    experiment = Experiment.model_validate(
        {
            "title": "",
            "question": "",
            "site": "static",
            "arms": {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}},
            "factors": {"load.connections": POWERS},
        }
    )
    one = point_s(experiment)
    assert thinned(experiment, 10 * one) == experiment
    assert thinned(experiment, 3.5 * one).factors == {"load.connections": [1, 16, 512]}
    assert thinned(experiment, 0.1).factors == {"load.connections": [16]}
