"""Slots and trials are made as short as a limit of time asks for, and no shorter."""

from collections.abc import Sequence

import pytest

from builders import SimulatedVariant, pilot_record, point_data, run_head, simulated_run
from webdyno.comparison import foresee, question_of
from webdyno.core.experiment import Experiment
from webdyno.core.looks import SlotSettings
from webdyno.core.measure import CapacitySettings, Measure
from webdyno.core.records import AdjustmentRecord, PilotRecord, Record, RoundRecord, SlotRecord
from webdyno.planning.fitting import LEAST_WINDOW_S, fitted_trials, next_round_s
from webdyno.planning.settings import slot_settings, slots_per_variant
from webdyno.validity import spent_s, used_s

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}


def pilots(warmup_s: float = 0.0, ramp_up_s: float = 0.1, window_s: float = 1.0) -> list[Record]:
    return [
        pilot_record(it, warmup_s=warmup_s, ramp_up_s=ramp_up_s, window_s=window_s, start_s=0.1)
        for it in VARIANTS
    ]


def limited(budget_s: float, **measure: object) -> Experiment:
    given = {"seed": 1, "budget_s": budget_s, "budget_is_limit": True, **measure}
    return run_head(measure=Measure.model_validate(given)).experiment


def fitted(budget_s: float, records: Sequence[Record], **measure: object) -> SlotSettings:
    return slot_settings(point_data(records, limited(budget_s, **measure)))


def planned_s(settings: SlotSettings) -> float:
    """How long the loads of a round take."""
    warmups_s = sum(map(settings.warmup_takes_s, settings.warmup_s))
    return warmups_s + 2 * sum(it + settings.window_s for it in settings.ramp_up_s.values())


def test_what_fits_stays() -> None:
    looks = pilots()
    usual = slot_settings(point_data(looks, limited(90.0).with_measure(budget_is_limit=False)))
    assert fitted(90.0, looks) == usual
    assert usual.window_s == 1.0


def test_windows_come_first_then_ramp_ups_and_none_is_shorter_than_may_be() -> None:
    looks = pilots(ramp_up_s=0.3)
    shorter = fitted(32.0, looks)
    assert LEAST_WINDOW_S < shorter.window_s < 1.0
    assert set(shorter.ramp_up_s.values()) == {0.3}
    shortest = fitted(10.0, looks)
    assert shortest.window_s == LEAST_WINDOW_S
    assert max(shortest.ramp_up_s.values()) < 0.3


def test_the_fewest_rounds_of_the_settings_end_in_time() -> None:
    looks = pilots(warmup_s=2.0, ramp_up_s=0.2)
    settings = fitted(40.0, looks)
    pilots_s = used_s(point_data(looks))
    assert 0 < max(settings.warmup_s.values()) < 2.0
    assert pilots_s + 6 * planned_s(settings) < 40.0


def test_warm_ups_go_before_windows_that_can_t_be_shorter() -> None:
    """Of a server that waits a quarter of a second, five rounds fitted into a minute: no answer."""
    looks = [
        pilot.replace(latency_s=0.233, took_s=5.0)
        for pilot in pilots(warmup_s=1.6, ramp_up_s=0.45, window_s=1.2)
        if isinstance(pilot, PilotRecord)
    ]
    settings = fitted(60.0, looks)
    assert settings.window_s == pytest.approx(4 * 0.233)
    own_s = 2 * (0.25 + 2 * (0.08 + 0.233)) + 4 * 0.233 / 2
    assert 10.0 + 6 * (planned_s(settings) + own_s) < 60.0


def test_what_the_user_sets_stays() -> None:
    looks = pilots(warmup_s=2.0, ramp_up_s=0.3)
    given = {"slot_s": 1.5, "warmup_s": 1.0, "ramp_up_s": 0.4, "slots_per_variant": 4}
    settings = fitted(10.0, looks, **given)
    assert settings.window_s == 1.5
    assert set(settings.warmup_s.values()) == {1.0}
    assert set(settings.ramp_up_s.values()) == {0.4}
    assert settings.slots_per_variant == 4


def test_a_warm_up_that_the_user_sets_for_a_variant_stays_and_the_others_are_cut() -> None:
    looks, experiment = pilots(warmup_s=2.0, ramp_up_s=0.2), limited(40.0)
    own = experiment.variants["nginx"].replace(warmup_s=2.0)
    given = experiment.replace(variants={**experiment.variants, "nginx": own})
    cut, settings = (slot_settings(point_data(looks, each)) for each in (experiment, given))
    assert settings.warmup_s["nginx"] == 2.0
    assert 0 < settings.warmup_s["apache"] < cut.warmup_s["apache"] < 2.0


def lasting(
    rounds: int, took_s: float, budget_s: float, rested_s: float = 0.0, warmup_s: float = 0.0
) -> tuple[list[Record], Experiment]:
    """Rounds of so long."""
    run = simulated_run(VARIANTS, rounds=rounds, measure=Measure(seed=1, slots_per_variant=2))
    records = [
        it.replace(took_s=took_s, rested_s=rested_s) if isinstance(it, RoundRecord) else it
        for it in run.records
    ]
    return [*pilots(warmup_s), *records], limited(budget_s)


def test_windows_get_shorter_where_rounds_take_long_and_never_longer_again() -> None:
    windows_s = []
    for rounds in range(8):
        records, experiment = lasting(rounds, took_s=5.0, budget_s=34.0)
        windows_s.append(slot_settings(point_data(records, experiment)).window_s)
    assert windows_s == sorted(windows_s, reverse=True)
    assert windows_s[-1] < windows_s[0]


def test_wake_ups_are_what_a_round_takes_besides_its_loads() -> None:
    """No setting makes them shorter: windows that took them for loads would be too long."""
    records, experiment = lasting(4, took_s=5.0, budget_s=34.0)
    slot = next(it for it in records if isinstance(it, SlotRecord))
    woken = list[Record]()
    for it in records:
        if isinstance(it, RoundRecord):
            woken.append(slot.replace(phase="wake-up", round=it.round, slot=99))
        woken.append(it)
    assert len(woken) == len(records) + 4
    settings, same = (slot_settings(point_data(each, experiment)) for each in (records, woken))
    assert settings == same


def test_an_adjustment_that_asks_for_more_slots_gets_what_there_is_time_for() -> None:
    records, experiment = lasting(2, took_s=3.0, budget_s=30.0)
    longer = slot_settings(point_data(records, experiment)).replace(slots_per_variant=16)
    adjusted = AdjustmentRecord(
        round=2, rule="few-samples", variant="nginx", what="", settings=longer, again=False
    )
    data = point_data([*records, adjusted], experiment)
    assert slots_per_variant(data) == 2
    unlimited = experiment.with_measure(budget_is_limit=False)
    assert slots_per_variant(data.under(unlimited)) == 16


def test_waits_until_servers_rest_take_what_loads_leave() -> None:
    """Warm-ups of virtual machines had gone, from round to round, for waits of 20 s in each."""
    resting = AdjustmentRecord(
        round=1,
        rule="left-over-work",
        variant="nginx",
        what="",
        settings=slot_settings(point_data(pilots(2.0), limited(600.0))).replace(rest_s=3.0),
        again=False,
    )
    for rounds in range(1, 6):
        records, experiment = lasting(rounds, 16.0, 114.0, rested_s=8.0, warmup_s=2.0)
        settings = slot_settings(point_data([*records, resting], experiment))
        assert set(settings.warmup_s.values()) == {2.0}
        assert 0.0 < settings.rest_s < 3.0
    enough = point_data([*records, resting], limited(600.0))
    assert slot_settings(enough).rest_s == 3.0
    little = point_data([*records, resting], limited(50.0))
    assert slot_settings(little).rest_s == 0.0


def test_a_round_with_more_slots_is_expected_to_take_longer() -> None:
    records, experiment = lasting(3, took_s=3.0, budget_s=60.0)
    data = point_data(records, experiment)
    assert next_round_s(point_data(pilots(), experiment), slots=4) == 0.0
    assert next_round_s(data, slots=4) == 3.0
    assert next_round_s(data, slots=8) == 6.0


@pytest.mark.parametrize(("left_s", "trial_s"), [(600.0, 4.0), (60.0, 1.7), (10.0, 1.0)])
def test_trials_are_as_long_as_there_is_time_for(left_s: float, trial_s: float) -> None:
    settings = CapacitySettings(slo=["p99<50ms"])
    searched = limited(left_s).model_dump(exclude_unset=True)
    asked = Experiment.model_validate(
        {**searched, "capacity": settings, "variants": {"nginx": {"stack": "nginx"}}}
    )
    data = point_data([], asked)
    shorter = fitted_trials(settings, data, question_of(asked).fewest_rounds, left_s)
    assert shorter.deciding_s == pytest.approx(trial_s, abs=0.1)
    given = settings.replace(longest_trial_s=8.0)
    assert fitted_trials(given, data, 6, left_s) == given
    unlimited = data.under(asked.with_measure(budget_is_limit=False))
    assert fitted_trials(settings, unlimited, 6, left_s) == settings


def test_a_forecast_is_made_only_where_it_can_be_kept() -> None:
    run = simulated_run(VARIANTS, rounds=7, restart_sd=0.02, measure=Measure(seed=1))
    usual = foresee(run.data)
    assert usual
    assert usual.can_be_kept(run.data)
    short = run.head.experiment.with_measure(budget_s=20.0, budget_is_limit=True)
    assert not usual.can_be_kept(run.data.under(short))
    sure = simulated_run(VARIANTS, rounds=8, restart_sd=0.001, slot_sd=0.001)
    over = foresee(sure.data)
    assert over
    assert over.rounds <= 8
    assert not over.can_be_kept(sure.data)  # "round 9 of about 8 · 0 s left"


def test_a_round_that_was_cut_took_time_as_well() -> None:
    run = simulated_run(VARIANTS, rounds=3)
    last = max(at for at, it in enumerate(run.records) if isinstance(it, RoundRecord))
    cut = run.whole.__class__(run.head, run.records[:last])
    assert spent_s(cut) > used_s(cut)
