"""How long each variant is warmed up and measured, by its pilot run and the user's wishes."""

import pytest

from builders import SimulatedVariant, pilot_record, point_data, simulated_run
from planning.test_adjustments import LATENCY_S, PILOTS, VARIANTS, measured, pilot
from webdyno.core.load import Load
from webdyno.core.looks import SlotSettings
from webdyno.core.measure import Measure
from webdyno.planning.settings import pilots, slot_settings, slots_per_variant
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.tune.settings import HalvingSettings


def test_windows_are_alike_for_all_variants_and_what_comes_before_is_each_variants_own() -> None:
    experiment = measured().head.experiment
    settings = slot_settings(point_data(PILOTS, experiment))
    assert settings == SlotSettings(
        warmup_s={"nginx": 0.1, "apache": 0.7},
        ramp_up_s={"nginx": 0.3, "apache": 0.1},
        window_s=1.5,
        phase_s={"nginx": LATENCY_S, "apache": LATENCY_S},
    )


@pytest.mark.parametrize(
    ("took_s", "ramp_up_s", "window_s", "expected_s"),
    [
        pytest.param(1.9, 0.02, 0.55, 0.55, id="usual"),
        pytest.param(3.0, 0.15, 0.55, 0.496, id="pilots and ramp-ups took long"),
        pytest.param(9.0, 0.15, 0.55, 0.4, id="very long"),
        pytest.param(9.0, 0.15, 0.8, 0.8, id="windows of this length have a reason"),
    ],
)
def test_short_windows_give_back_what_pilots_and_ramp_ups_took(
    took_s: float, ramp_up_s: float, window_s: float, expected_s: float
) -> None:
    """So that pilots and the fewest rounds of two variants that start fast take 23 s together."""
    looks = [
        pilot_record(variant, warmup_s=0, ramp_up_s=ramp_up_s, window_s=window_s, took_s=took_s)
        for variant in VARIANTS
    ]
    settings = slot_settings(point_data(looks, measured().head.experiment))
    assert settings.window_s == pytest.approx(expected_s, abs=0.001)


@pytest.mark.parametrize(("within_s", "expected_s"), [(0.0, 0.55), (20.0, 0.4), (60.0, 0.55)])
def test_short_windows_give_back_what_the_time_for_an_answer_asks_for(
    within_s: float, expected_s: float
) -> None:
    looks = [
        pilot_record(variant, warmup_s=0, ramp_up_s=0.15, window_s=0.55, took_s=5.0)
        for variant in VARIANTS
    ]
    experiment = measured(Measure(answer_within_s=within_s)).head.experiment
    assert slot_settings(point_data(looks, experiment)).window_s == expected_s


def test_windows_hold_twenty_bursts_unless_the_user_gives_their_length() -> None:
    """Short windows stay as long as bursts need, whatever the pilots took."""
    bursts = Load(loop="open", rate_per_s=500, burst=20)
    looks = [
        pilot_record(variant, warmup_s=0, ramp_up_s=0.1, window_s=0.5, took_s=9.0)
        for variant in VARIANTS
    ]
    usual = measured(Measure()).head.experiment.replace(load=bursts)
    assert slot_settings(point_data(looks, usual)).window_s == pytest.approx(0.8)
    given = measured(Measure(slot_s=0.3)).head.experiment.replace(load=bursts)
    assert slot_settings(point_data(looks, given)).window_s == 0.3


def test_short_windows_give_back_nothing_for_what_the_user_excluded() -> None:
    """The pilots' ramp-ups aren't made where the user has others."""
    looks = [
        pilot_record(variant, warmup_s=0, ramp_up_s=0.15, window_s=0.55, took_s=3.0)
        for variant in VARIANTS
    ]
    experiment = measured(Measure(ramp_up_s=0.0)).head.experiment
    assert slot_settings(point_data(looks, experiment)).window_s == 0.55


def test_equal_variants_and_those_of_a_gate_get_what_the_one_needs_that_needs_most() -> None:
    """Pilots may find that one of two equal servers has to warm up and the other not."""
    equal = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=1)
    settings = slot_settings(point_data(PILOTS, equal.head.experiment))
    assert settings.warmup_s == {"nginx": 0.7, "apache": 0.7}
    assert settings.ramp_up_s == {"nginx": 0.3, "apache": 0.3}
    gate = measured().head.experiment.replace(asks=GateSettings())
    assert slot_settings(point_data(PILOTS, gate)).warmup_s == {"nginx": 0.7, "apache": 0.7}


def test_bursts_are_for_those_whose_pilot_found_them_and_for_their_equals() -> None:
    nginx = pilot("nginx", 0.1, 0.3, 0.5)
    in_bursts = nginx.found.model_copy(update={"in_bursts": True})
    looks = [nginx.model_copy(update={"found": in_bursts}), PILOTS[1]]
    assert slot_settings(point_data(looks, measured().head.experiment)).in_bursts == ["nginx"]
    equal = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=1)
    assert slot_settings(point_data(looks, equal.head.experiment)).in_bursts == ["nginx", "apache"]
    gate = measured().head.experiment.replace(asks=GateSettings())
    assert slot_settings(point_data(looks, gate)).in_bursts == ["nginx", "apache"]
    asked = measured(Measure(warmup_bursts="on")).head.experiment
    assert slot_settings(point_data(PILOTS, asked)).in_bursts == ["nginx", "apache"]


def test_settings_that_tuning_tries_are_measured_as_the_default_needs() -> None:
    tried = measured().head.experiment.replace(asks=HalvingSettings())
    (of_default,) = pilots(point_data(PILOTS[:1])).values()
    found = slot_settings(point_data(PILOTS[:1], tried)).warmup_s
    assert found == {"nginx": of_default.warmup_s, "apache": of_default.warmup_s}


def test_windows_begin_anywhere_in_a_variants_cycle_unless_the_user_says_where() -> None:
    slow = pilot("nginx", 0.1, 0.3, 0.5).model_copy(update={"latency_s": 0.3})
    experiment = measured().head.experiment
    assert slot_settings(point_data([slow, PILOTS[1]], experiment)).phase_s == {
        "nginx": 0.3,
        "apache": LATENCY_S,
    }
    own = measured(Measure(ramp_up_s=0.2)).head.experiment
    assert slot_settings(point_data([slow, PILOTS[1]], own)).phase_s == {
        "nginx": 0.0,
        "apache": 0.0,
    }
    equal = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=1)
    alike = slot_settings(point_data([slow, PILOTS[1]], equal.head.experiment)).phase_s
    assert alike == {"nginx": 0.3, "apache": 0.3}


def test_what_the_user_set_wins() -> None:
    given = Measure(slot_s=2, ramp_up_s=0, warmup_s=3)
    settings = slot_settings(point_data(PILOTS, measured(given).head.experiment))
    assert (set(settings.ramp_up_s.values()), settings.window_s) == ({0}, 2)
    assert set(settings.warmup_s.values()) == {3}


def test_without_a_pilot_there_are_fixed_times() -> None:
    settings = slot_settings(point_data([], measured().head.experiment))
    assert (set(settings.ramp_up_s.values()), settings.window_s) == ({0}, 0.5)
    assert set(settings.warmup_s.values()) == {1}


def test_rounds_after_a_pilot_begin_with_the_fewest_slots() -> None:
    run = measured()
    assert slots_per_variant(run.data) == 4
    assert slots_per_variant(point_data([*PILOTS, *run.records], run.head.experiment)) == 2
