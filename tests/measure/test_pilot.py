"""What of a pilot can be known without servers; tests/e2e has real ones."""

from math import inf
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from builders import (
    SimulatedVariant,
    load_result,
    pilot_record,
    point_data,
    simulated_run,
)
from webdyno.comparison import question_of
from webdyno.core.experiment import Experiment
from webdyno.core.load_result import Times
from webdyno.core.measure import Measure
from webdyno.core.records import Record
from webdyno.core.variant import Variant
from webdyno.measure.pilot import _cold, _needs, needs_pilot
from webdyno.measure.pilot_looks import PIECE_S, WINDOW_S, PilotLoad, PilotLook, _by_window
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.variant import RunningRound
from webdyno.planning.pilot import Needs
from webdyno.planning.settings import slot_settings, starts_s, warmups_may_take_s
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.ranking.settings import RankingSettings

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}


def experiment(**measure: float) -> Experiment:
    return simulated_run(
        VARIANTS, rounds=1, measure=Measure.model_validate(measure)
    ).head.experiment


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, True),
        ({"slot_s": 1.0}, True),
        ({"ramp_up_s": 0.1}, True),
        ({"slot_s": 1.0, "warmup_s": 1.0}, False),
    ],
)
def test_a_pilot_is_for_what_is_not_set(given: dict[str, float], asked: bool) -> None:
    assert needs_pilot(experiment(**given)) is asked


def test_instruments_that_know_no_windows_have_no_pilot() -> None:
    by_ab = experiment().model_copy(update={"generator": "ab"})
    assert not needs_pilot(by_ab)


def test_one_pilot_serves_both_variants_of_a_gates_baseline() -> None:
    gate = GateSettings(worse_than={"throughput_rps": 0.05}, baseline="a", head="b")
    variants = {
        "baseline": Variant(stack="nginx"),
        "again": Variant(stack="nginx"),
        "head": Variant(stack="caddy"),
    }
    gated = experiment().model_copy(update={"asks": gate, "variants": variants})
    assert question_of(gated).piloted_variants == ["baseline", "head"]
    assert question_of(experiment()).piloted_variants == [*VARIANTS]


def test_cpu_time_is_shared_out_to_windows() -> None:
    used = _by_window([(0.0, 1.0), (0.05, 1.5), (0.1, 1.6)], 4)
    assert used == pytest.approx([0.25, 0.25, 0.05, 0.05])
    assert _by_window([(0.0, 1.0)], 4) == []


def test_cpu_time_per_answer_stands_next_to_the_rate() -> None:
    seen = PilotLook(responses=[100] * 40, cpu_s=[0.01] * 40)
    rate, cost = seen.series()
    assert np.exp(rate.logs) == pytest.approx(4000, rel=0.01)
    assert np.exp(cost.logs) == pytest.approx(1e-4, rel=0.01)
    assert len(PilotLook(responses=[100] * 40).series()) == 1


def test_a_load_too_short_for_any_response_leaves_the_latency_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last piece may last a few milliseconds.

    A server that answers after 200 ms had a latency of 0 then, thus no ramp-up, and seemed 5%
    slower than it was.
    """
    slow = SimulatedVariant(throughput_rps=80, latency_p50_us=200_000)
    none = load_result(slow, duration_s=0.001).replace(latency_us=Times(mean=0.0))
    loads = [load_result(slow, duration_s=0.8), none]
    monkeypatch.setattr(PilotLoad, "_load", lambda *_: loads.pop(0))
    variant = SimpleNamespace(name="nginx")
    running = SimpleNamespace(up={"nginx": SimpleNamespace(is_counted=False)})
    load = PilotLoad(cast("RunningRound", running), cast("PlannedVariant", variant))
    seen = PilotLook()
    for load_s in (0.8, 0.02):
        load.watch(seen, load_s)
    assert seen.latency_s == pytest.approx(0.2, rel=0.2)


def test_cold_figures_end_where_the_rate_is_nearly_steady() -> None:
    from webdyno.core.looks import Pilot

    found = Pilot(
        warmup_s=0.1, ramp_up_s=0.0, window_s=0.5, period_s=None, steady=True, why="level"
    )
    seen = PilotLook(responses=[50, 80, 95, 100, 100, 100, 100, 100], cpu_s=[0.02] * 8)
    cold = _cold(seen, found, ready_s=0.3, until_ready_s=0.05)
    assert cold.first_response_s == 0.3
    assert cold.full_throughput_s == pytest.approx(0.3 + 3 * WINDOW_S)
    assert cold.cpu_s == pytest.approx(0.05 + 3 * 0.02)


def test_quick_variants_get_slots_of_which_six_rounds_fit_into_a_third_of_the_budget() -> None:
    needs = _needs(point_data([], experiment(budget_s=90.0)), "nginx", start_s=0.4, latency_s=0.002)
    assert 6 * 2 * (0.4 + 2 * needs.most_slot_s) <= 30
    slow = _needs(point_data([], experiment(budget_s=90.0)), "nginx", start_s=0.4, latency_s=0.2)
    assert slow.most_slot_s > needs.most_slot_s


def league_of_fourteen() -> Experiment:
    variants = {f"v{n}": Variant(stack="nginx", settings={"workers": n + 1}) for n in range(14)}
    return experiment(budget_s=900.0).replace(asks=RankingSettings(), variants=variants)


def test_the_fewest_rounds_of_a_ranking_fit_into_its_budget_with_slow_variants() -> None:
    league = league_of_fourteen()
    rounds = question_of(league).fewest_rounds
    assert rounds == 13
    needs = _needs(point_data([], league), "v0", start_s=1.5, latency_s=0.3)
    assert rounds * 14 * (1.5 + 2 * needs.most_slot_s) <= 900
    assert needs.most_warmup_s > 2.0  # each variant's own, which few of them need


@pytest.mark.parametrize("slow_starts", [1, 2, 14])
def test_long_warm_ups_share_what_short_ones_and_starts_leave(slow_starts: int) -> None:
    """Two runtimes of fourteen stacks compile for seconds and start slowly; the others don't."""
    league, runtimes = league_of_fourteen(), {"v3", "v8"}
    records: list[Record] = []
    for n, variant in enumerate(league.variants):
        start_s = 2.7 if n < slow_starts or variant in runtimes else 0.1
        needs = _needs(point_data(records, league), variant, start_s, latency_s=0.002)
        warmup_s = needs.most_warmup_s if variant in runtimes else 0.3
        records.append(pilot_record(variant, warmup_s=warmup_s, start_s=start_s))
    data = point_data(records, league)
    settings = slot_settings(data)
    longest_s = settings.warmup_s["v3"]
    assert settings.warmup_s["v8"] == pytest.approx(longest_s)
    assert max(settings.warmup_s.values()) == pytest.approx(longest_s)
    assert sum(settings.warmup_s.values()) == pytest.approx(
        min(2 * longest_s + 12 * 0.3, warmups_may_take_s(data, starts_s(data)))
    )
    if slow_starts < 14:
        assert longest_s > 7
    rounds_s = 13 * (
        sum(starts_s(data).values())
        + sum(settings.warmup_s.values())
        + 14 * 2 * (settings.window_s + settings.ramp_up_s["v0"])
    )
    assert rounds_s <= 900


NEEDS = Needs(0.2, None, 2, 1.0, 1.0)


def watched(
    monkeypatch: pytest.MonkeyPatch, *, lost_windows: int = 0, failed: bool = False
) -> list[float]:
    """Have loads take no time; return how long each of them, but starts of the load, should last.

    Each start of the load takes 1.4 s, and after all of them more would help.
    """
    loads_s: list[float] = []

    def watch(_: PilotLoad, seen: PilotLook, load_s: float) -> None:
        loads_s.append(load_s)
        seen.responses += [2] * (round(load_s / WINDOW_S) - lost_windows)
        seen.failed = failed

    monkeypatch.setattr(PilotLoad, "watch", watch)
    monkeypatch.setattr(PilotLoad, "starts", lambda *_: [PilotLook(responses=[2] * 56)] * 2)
    monkeypatch.setattr("webdyno.measure.pilot_looks.step_after", lambda *_, **__: "longer")
    return loads_s


def loading(budget_s: float, used_s: float = 0.0) -> PilotLoad:
    """A load of a point that has this time, and has used so much of it."""
    experiment = SimpleNamespace(measure=Measure(budget_s=budget_s))
    running = SimpleNamespace(point=SimpleNamespace(experiment=experiment, used_s=used_s))
    return PilotLoad(cast("RunningRound", running), cast("PlannedVariant", None))


@pytest.mark.parametrize(
    ("budget_s", "looked_s"), [(60, 1.0), (450, 2.0), (900, 4.0), (9_000, 4.0)]
)
def test_who_has_long_looks_for_longer_at_first(
    budget_s: float, looked_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads_s = watched(monkeypatch, failed=True)
    found = loading(budget_s).until_steady(
        [], 30.0, _never_asked, piece_s=PIECE_S, ends_s=inf, is_last_start=True
    )
    assert found == ("enough", [])
    assert loads_s == [looked_s]


def test_what_lacks_a_window_of_its_time_is_no_reason_to_look_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last window of a load may be cut short.

    39 of 40 were followed by one more and by fresh starts of the load: a fifth of a limit of 60 s.
    """
    loads_s = watched(monkeypatch, lost_windows=1)
    loading(60).until_steady(
        [], 1.0, lambda _: NEEDS, piece_s=PIECE_S, ends_s=inf, is_last_start=True
    )
    assert loads_s == [1.0]


def test_no_look_goes_on_where_fresh_starts_of_the_load_don_t_fit_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads_s = watched(monkeypatch)
    load = loading(60, used_s=4.0)

    def looked_until(ends_s: float) -> list[float]:
        loads_s.clear()
        load.until_steady(
            [], 2.0, lambda _: NEEDS, piece_s=PIECE_S, ends_s=ends_s, is_last_start=True
        )
        return loads_s

    assert looked_until(4.0 + 0.25 + 2.8 - 0.1) == [1.0]
    assert len(looked_until(4.0 + 0.25 + 2.8 + 0.1)) > 1


def _never_asked(_: float | None) -> Needs:
    raise AssertionError
