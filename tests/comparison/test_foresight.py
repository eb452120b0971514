"""How far a run is from stopping by itself."""

import pytest

from builders import SimulatedRun, SimulatedVariant, point_data, simulated_run
from comparison.searches import Variant, searched
from webdyno.comparison import decide, foresee
from webdyno.core.measure import Measure
from webdyno.questions.compare.settings import OneSidedSettings
from webdyno.questions.ranking.settings import RankingSettings

EQUAL = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}


def run(rounds: int, noise: float, measure: Measure | None = None) -> SimulatedRun:
    return simulated_run(EQUAL, rounds=rounds, restart_sd=noise, slot_sd=noise, measure=measure)


def test_what_is_narrow_enough_needs_no_more_rounds() -> None:
    made = run(6, 0.002)
    foreseen = foresee(made.data)
    assert foreseen is not None
    assert foreseen.rounds == 6
    assert foreseen.estimate.half_width <= foreseen.wanted
    assert decide(made.data, 10.0) is not None


def test_more_noise_takes_more_rounds() -> None:
    needed = []
    for noise in (0.01, 0.02, 0.03):
        made = run(6, noise)
        foreseen = foresee(made.data)
        assert foreseen is not None
        needed.append(foreseen.rounds)
    assert needed == sorted(needed)
    assert needed[0] < needed[-1] <= 30


def test_it_foresees_about_what_is_needed() -> None:
    early, late = run(6, 0.015), run(30, 0.015)
    foreseen = foresee(early.data)
    assert foreseen is not None
    stopped = next(
        rounds
        for rounds in range(6, 31)
        if decide(
            point_data(
                [it for it in late.records if (it.round or 0) <= rounds], late.head.experiment
            ),
            10.0,
        )
    )
    assert foreseen.rounds == pytest.approx(stopped, rel=0.5)


def test_what_stops_by_another_rule_is_not_foreseen() -> None:
    made = run(6, 0.01).asking(OneSidedSettings(claim="faster"))
    assert foresee(made.data) is None
    one = run(1, 0.01)
    assert foresee(one.data) is None
    race = {"asks": RankingSettings(), "measure": Measure()}
    assert foresee(point_data(made.records, made.head.experiment.model_copy(update=race))) is None


def test_the_capacity_of_a_single_variant_is_not_foreseen() -> None:
    made = searched(nginx=Variant(15_000))
    assert foresee(made.data) is None
