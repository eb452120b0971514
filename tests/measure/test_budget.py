"""Sweeps made to fit into a time: which levels stay."""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, Level
from webdyno.core.load import Load
from webdyno.core.sweep import plan_points
from webdyno.measure.budget import (
    OWN_S,
    estimate_text,
    least_s,
    levels_within,
    overrun_warning,
    point_s,
    reduce_levels,
    refuse_too_short,
    widest_gaps_first,
)
from webdyno.systems.variants import resolve

POWERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
FACTORS = st.dictionaries(
    st.text("abc", min_size=1, max_size=2),
    st.lists(st.integers(), min_size=1, max_size=12, unique=True),
    max_size=3,
)


def test_the_middle_comes_first_then_the_ends() -> None:
    assert widest_gaps_first(1) == [0]
    assert widest_gaps_first(2) == [0, 1]
    assert widest_gaps_first(5) == [2, 4, 0, 1, 3]
    assert levels_within({"connections": POWERS}, 3) == {"connections": [1, 16, 512]}
    assert levels_within({"connections": POWERS}, 2) == {"connections": [16, 512]}


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
    assert levels_within(factors, 1, first) == one
    assert levels_within(factors, 3, first) == one | {"connections": [2, 16, 512]}
    assert levels_within(factors, 2, first) == one | {"connections": [2, 512]}
    assert levels_within(factors, 4, first) == one | {
        "connections": [2, 512],
        "generator": ["loadgen", "ab"],
    }


def test_factors_take_turns_the_first_one_first() -> None:
    factors: dict[str, Sequence[Level]] = {
        "keepalive": ["always", "never"],
        "connections": POWERS,
    }
    assert levels_within(factors, 3) == {"keepalive": ["always", "never"], "connections": [16]}
    assert levels_within(factors, 7) == {
        "keepalive": ["always", "never"],
        "connections": [1, 16, 512],
    }


@given(st.integers(1, 300))
def test_every_level_has_its_turn_once(count: int) -> None:
    assert sorted(widest_gaps_first(count)) == list(range(count))


@given(FACTORS, st.integers(-1, 200))
def test_levels_are_thinned_as_little_as_possible(
    factors: dict[str, list[int]], most_points: int
) -> None:
    kept = levels_within(factors, most_points)
    assert list(kept) == list(factors)
    points = prod(map(len, kept.values()))
    assert points <= max(most_points, 1)
    for key, levels in factors.items():
        assert [level for level in levels if level in kept[key]] == kept[key]
        one_more = points // len(kept[key]) * (len(kept[key]) + 1)
        assert len(kept[key]) == len(levels) or one_more > most_points


EXPERIMENT = Experiment.model_validate(
    {
        "title": "",
        "question": "",
        "site": "static",
        "variants": {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}},
    }
)
CATALOGUE = Catalogue.load()


def with_budget(budget_s: float, levels: Sequence[Level] = ()) -> Experiment:
    measure = EXPERIMENT.measure.model_copy(update={"budget_s": budget_s})
    factors = {"load.connections": list(levels)} if levels else {}
    return EXPERIMENT.model_copy(update={"measure": measure, "factors": factors})


def test_a_budget_that_is_too_short_is_reported_with_one_that_would_do() -> None:
    least = round(least_s(EXPERIMENT, CATALOGUE))
    reported = estimate_text(with_budget(least / 2), CATALOGUE)
    assert " s is too short for a verdict" in reported
    assert reported.startswith(f"takes about {least} s: ")
    assert "too short" not in estimate_text(with_budget(least), CATALOGUE)
    assert f"expected: {least} s (" in estimate_text(with_budget(least - 1), CATALOGUE)
    assert f"expected: {least} s–90 s (" in estimate_text(with_budget(90), CATALOGUE)


def test_a_sweep_takes_as_long_as_all_of_its_points() -> None:
    swept = with_budget(40, [1, 8])
    assert least_s(swept, CATALOGUE) == OWN_S + 2 * point_s(EXPERIMENT, CATALOGUE)
    assert "6 rounds or more at each of 2 points" in estimate_text(swept, CATALOGUE)


def test_ramps_of_connections_and_windows_for_bursts_take_their_time() -> None:
    usual_s = point_s(EXPERIMENT, CATALOGUE)
    ramped = EXPERIMENT.replace(load=Load(connection_ramp_s=2))
    assert point_s(ramped, CATALOGUE) > usual_s + 6 * 2 * 2 * 2 - 1
    rare = EXPERIMENT.replace(load=Load(loop="open", rate_per_s=50, burst=100))
    assert point_s(rare, CATALOGUE) > usual_s + 6 * 2 * 2 * 39


def test_more_services_take_longer_to_start() -> None:
    variants = {"a": {"stack": "nginx-phpfpm"}, "b": {"stack": "nginx"}}
    php = EXPERIMENT.model_validate(EXPERIMENT.model_dump() | {"variants": variants})
    assert least_s(php, CATALOGUE) > least_s(EXPERIMENT, CATALOGUE)


def test_programs_of_the_catalog_take_longer_to_start_as_well() -> None:
    variants = {"a": {"stack": "express"}, "b": {"stack": "fastify"}}
    asked = EXPERIMENT.model_dump() | {"site": "json", "variants": variants}
    apps = EXPERIMENT.model_validate(asked)
    assert least_s(apps, CATALOGUE) > least_s(EXPERIMENT, CATALOGUE)
    short = apps.replace(measure=apps.measure.replace(budget_s=1.0))
    assert "or more where a start takes longer than" in estimate_text(short, CATALOGUE)


def test_an_application_of_ones_own_takes_longer_to_start_and_nobody_knows_how_long() -> None:
    variants = {"one": {"stack": "cmd:./a $PORT"}, "two": {"stack": "cmd:./b $PORT"}}
    reported = CommandLine({"title": "t", "question": "q", "variants": variants}, {})
    draft, catalogue = resolve(
        Draft.of(reported, []), CATALOGUE, Path.cwd(), lambda _: None, lambda _: None
    )
    own = draft.check(catalogue)
    assert least_s(own, catalogue) > least_s(with_budget(30), CATALOGUE)
    own = own.model_copy(update={"measure": own.measure.model_copy(update={"budget_s": 1.0})})
    assert "or more where a start takes longer than" in estimate_text(own, catalogue)


def test_a_first_round_that_took_longer_is_reported() -> None:
    points = [plan.experiment for plan in plan_points(with_budget(40, [1, 8]))]
    assert overrun_warning(points, first_round_s=3) is None
    assert overrun_warning(points, first_round_s=10) == (
        "the first round took 10 s: a verdict takes about 2 min, longer than the 40 s it was given"
    )


def test_a_budget_buys_points_and_all_of_it_buys_all() -> None:
    experiment = with_budget(90, POWERS)
    one = point_s(experiment, CATALOGUE)
    assert reduce_levels(experiment, CATALOGUE, 10 * one) == experiment
    assert reduce_levels(experiment, CATALOGUE, 3.5 * one).factors == {
        "load.connections": [1, 16, 512]
    }
    assert reduce_levels(experiment, CATALOGUE, 0.1).factors == {"load.connections": [16]}


def limited(budget_s: float, **more: object) -> Experiment:
    measure = {"budget_s": budget_s, "budget_is_limit": True}
    return Experiment.model_validate(EXPERIMENT.model_dump() | {"measure": measure} | more)


def test_a_limit_that_is_too_short_for_a_verdict_is_said_with_one_that_would_do() -> None:
    least = round(least_s(limited(30), CATALOGUE, shortest=True))
    assert least < least_s(EXPERIMENT, CATALOGUE)
    reported = estimate_text(limited(least / 2), CATALOGUE)
    assert "too short for a verdict" in reported
    assert f"(--time {least}s)" in reported
    assert estimate_text(limited(least), CATALOGUE).startswith(f"expected: {least} s (")
    usual = round(least_s(limited(90), CATALOGUE))
    assert f"expected: {usual} s–90 s (" in estimate_text(limited(90), CATALOGUE)


def test_a_limit_in_which_nothing_can_be_measured_is_refused() -> None:
    refuse_too_short(limited(6), CATALOGUE)
    with pytest.raises(UserError, match="--time 2s is too short to measure anything: one round"):
        refuse_too_short(limited(2), CATALOGUE)
    with pytest.raises(UserError, match="too short"):
        refuse_too_short(limited(6, factors={"load.connections": [1, 2, 3]}), CATALOGUE)


def test_shorter_trials_are_what_a_limit_makes_of_a_search() -> None:
    searched = {"capacity": {"slo": ["p99<50ms"]}, "variants": {"a": {"stack": "nginx"}}}
    asked = limited(60, **searched)
    assert least_s(asked, CATALOGUE, shortest=True) < 60 < least_s(asked, CATALOGUE)


def test_a_first_round_longer_than_a_limit_allows_is_reported_with_one_that_would_do() -> None:
    points = [limited(20)]
    assert overrun_warning(points, first_round_s=2.5, before_s=4.0) is None
    assert overrun_warning(points, first_round_s=5.0, before_s=4.0) == (
        "the first round took 5 s: a verdict takes about 34 s; it ends after 20 s with what is "
        "known by then. --time 38s would do"
    )
