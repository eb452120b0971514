"""How often the judge is right, by simulation (issue: the figures that the method promises)."""

from math import log, sqrt

import pytest

from simulations.comparisons import (
    NEIGHBOUR_WORLDS,
    PROMPT_WORLDS,
    World,
    coverage,
    experiments,
    shares,
)
from simulations.survival import misled
from webdyno.core.judgement import Verdict
from webdyno.core.measure import Measure

COUNT = 2_000
FEWER = 1_000
"""Where each experiment takes the most rounds, or is judged to its end."""
MEASURE = Measure()


def chance(share: float, count: int) -> float:
    """Two standard errors of a share that is counted in so many experiments."""
    return 2 * sqrt(share * (1 - share) / count)


@pytest.mark.long
def test_a_difference_of_five_per_cent_is_found_and_without_one_seldom_any() -> None:
    """At the worst noise, which serves twice: 5% is too small to be why a run stops by itself."""
    noisy = list(experiments(World(1.05, 0.05, 0.05), FEWER, Measure(patience=1)))
    by = shares(noisy, MEASURE)
    assert 0.93 <= coverage(noisy, 1.05) <= 0.97
    assert by[Verdict.FASTER] >= 0.90
    assert by[Verdict.SLOWER] == 0
    alike = [outcome.moved(-log(1.05)) for outcome in noisy]
    by = shares(alike, MEASURE)
    assert 0.93 <= coverage(alike, 1.0) <= 0.97
    assert by[Verdict.FASTER] + by[Verdict.SLOWER] <= 0.05 + chance(0.05, FEWER)


@pytest.mark.long
def test_patience_with_what_is_too_noisy_seldom_misleads() -> None:
    """At a noise that no machine should have, where most runs take more rounds than requested."""
    count = 300
    outcomes = list(experiments(World(1.0, 0.05, 0.05), count, MEASURE, seed=5))
    assert sum(outcome.rounds for outcome in outcomes) / count > 35
    by = shares(outcomes, MEASURE)
    assert coverage(outcomes, 1.0) >= 0.92
    assert by[Verdict.FASTER] + by[Verdict.SLOWER] <= 0.05 + chance(0.05, count)


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.015, 0.025])
def test_stopping_when_the_interval_is_narrow_keeps_its_coverage(noise: float) -> None:
    """At noise for which the stop rule ends most runs early, so that it could mislead most."""
    outcomes = list(experiments(World(1.3, noise, noise), COUNT, MEASURE, seed=1))
    assert sum(outcome.rounds for outcome in outcomes) / COUNT < 22
    assert 0.93 <= coverage(outcomes, 1.3) <= 0.97


@pytest.mark.long
@pytest.mark.parametrize("world", PROMPT_WORLDS, ids=lambda it: f"{it.ratio}-{it.slot_sd}")
def test_reporting_a_large_difference_promptly_keeps_its_coverage(world: World) -> None:
    outcomes = list(experiments(world, COUNT, MEASURE, seed=6))
    assert 0.93 <= coverage(outcomes, world.ratio) <= 0.97
    assert shares(outcomes, MEASURE)[Verdict.SLOWER] == 0


@pytest.mark.long
@pytest.mark.parametrize(("restart_sd", "slot_sd"), [(0.005, 0.04), (0.02, 0.06)])
def test_choosing_the_slots_keeps_the_coverage(restart_sd: float, slot_sd: float) -> None:
    """Where most of the noise is the slots', so that later rounds get more of them."""
    outcomes = list(experiments(World(1.1, restart_sd, slot_sd), COUNT, MEASURE, seed=2))
    assert sum(outcome.slots for outcome in outcomes) / COUNT > 4.5
    assert 0.93 <= coverage(outcomes, 1.1) <= 0.97


@pytest.mark.long
@pytest.mark.parametrize(
    "world", NEIGHBOUR_WORLDS, ids=lambda it: f"{it.interference:g}, {it.follows:g}"
)
def test_a_neighbour_costs_no_coverage_whomever_it_follows(world: World) -> None:
    outcomes = list(experiments(world, FEWER, MEASURE, seed=3))
    assert coverage(outcomes, world.ratio) >= 0.93


@pytest.mark.long
def test_going_on_until_a_verdict_survives_its_bounds_seldom_misleads() -> None:
    """Although interference took all of its bias bound, which is the worst case."""
    runs = 500
    assert misled(0.02, 0.05, runs, seed=4) <= 0.05 + chance(0.05, runs)


def test_equal_variants_become_equivalent_when_asked_for_enough_precision() -> None:
    precise = Measure(precision=0.008)
    by = shares(list(experiments(World(1.0, 0.01, 0.01), 300, precise)), precise)
    assert by[Verdict.EQUIVALENT] >= 0.95
