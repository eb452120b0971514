"""What limits variants and what each setting does, of simulated ones whose truth is known."""

import numpy as np
import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from webdyno.comparison import judge
from webdyno.evidence.point_data import PointData
from webdyno.questions.explain.decide import effects
from webdyno.questions.explain.explain import two_level_design
from webdyno.questions.explain.settings import DesignSettings, Intervention, LimitsSettings
from webdyno.questions.explain.show import what_limits, what_settings_do

FULL = SimulatedVariant(throughput_rps=10_000)


def with_less(**less: tuple[float, float]) -> SimulatedRun:
    """By resource: the share that was left, and the share of the throughput that came of it."""
    variants = {"nginx": FULL} | {
        name: SimulatedVariant(throughput_rps=10_000 * rate) for name, (_, rate) in less.items()
    }
    made = simulated_run(variants, rounds=10, restart_sd=0.005, slot_sd=0.005)
    resources = {
        "cpu": "servers' CPU",
        "client": "client's CPU",
        "workers": "workers",
        "connections": "connections",
    }
    interventions = {
        name: Intervention.model_validate({"resource": resources[name], "share": share})
        for name, (share, _) in less.items()
    }
    return made.asking(LimitsSettings(interventions=interventions))


def of_experiment(made: SimulatedRun, **changes: object) -> SimulatedRun:
    """Give the run as one of an experiment that says something else."""
    experiment = made.head.experiment.replace(**changes)
    return SimulatedRun(made.head.replace(experiment=experiment), made.records)


def test_what_the_rate_falls_with_is_the_limit() -> None:
    made = with_less(cpu=(0.8, 0.8), client=(0.8, 1.0), workers=(0.5, 0.5**0.5))
    found = {it.resource: it for it in judge(made.data).elasticities}
    assert found["servers' CPU"].found.estimate == pytest.approx(1, abs=0.05)
    assert found["client's CPU"].found.estimate == pytest.approx(0, abs=0.05)
    assert found["workers"].found.estimate == pytest.approx(0.5, abs=0.03)
    for it in found.values():
        assert it.found.low < it.found.estimate < it.found.high
    (reported,) = what_limits(list(found.values()))
    assert reported.startswith("nginx: the servers' CPU limits it (")
    assert "the number of its workers limits it in part (0." in reported
    assert "the client's CPU doesn't limit it (" in reported


def test_where_fewer_connections_ask_less_often_answers_wait_for_something_else() -> None:
    made = with_less(cpu=(0.8, 1.0), connections=(0.8, 0.8))
    (reported,) = what_limits(judge(made.data).elasticities)
    assert reported.startswith("nginx: the number of connections limits it (")
    assert "): its responses wait for something else than what is tried here; " in reported


def test_more_of_a_thing_shows_as_well() -> None:
    made = with_less(workers=(2.0, 2.0))
    (found,) = judge(made.data).elasticities
    assert found.found.low < found.found.estimate < found.found.high
    assert found.found.estimate == pytest.approx(1, abs=0.05)


def test_without_interventions_there_is_nothing_to_report() -> None:
    made = simulated_run({"a": FULL, "b": FULL}, rounds=6)
    assert judge(made.data).elasticities == []
    assert list(what_limits([])) == []


def with_settings(true: list[float], beyond: float = 1.0, noise: float = 0.01) -> SimulatedRun:
    """Settings that multiply the throughput by so much; the first two together by `beyond` more."""
    names = [f"setting {number}" for number in range(len(true))]
    levels = {
        f"variant {number}": list(row) for number, row in enumerate(two_level_design(len(true)))
    }
    variants = {}
    for variant, row in levels.items():
        rate = 10_000 * float(np.prod([it for it, on in zip(true, row, strict=True) if on] or [1]))
        rate *= beyond if len(row) > 1 and row[0] and row[1] else 1
        variants[variant] = SimulatedVariant(throughput_rps=rate)
    made = simulated_run(variants, rounds=10, restart_sd=noise, slot_sd=noise)
    return made.asking(DesignSettings(settings=names, levels=levels))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_what_a_setting_does_is_found(count: int) -> None:
    true = [1.5, 1.0, 0.8, 1.1, 1.0][:count]
    made = with_settings(true)
    found = {it.settings[0]: it for it in effects(made.data)[:count]}
    for number, ratio in enumerate(true):
        effect = found[f"setting {number}"]
        assert effect.ratio.estimate == pytest.approx(ratio, rel=0.03)
        assert effect.ratio.low < ratio < effect.ratio.high
        assert effect.is_sure == (ratio != 1)


def test_what_two_do_beyond_what_each_does_is_found() -> None:
    made = with_settings([1.5, 1.2], beyond=1.3)
    *alone, together = effects(made.data)
    assert [it.settings for it in alone] == [["setting 0"], ["setting 1"]]
    assert together.is_sure
    assert together.ratio.estimate == pytest.approx(1.3**0.5, rel=0.02)
    reported = list(what_settings_do([*alone, together]))
    assert "setting 0 together with setting 1: 1.1" in reported[-1]
    assert reported[-1].endswith("beyond what each does alone")


def test_what_does_nothing_is_called_unsure() -> None:
    made = with_settings([1.0, 2.0])
    reported = list(what_settings_do(effects(made.data)))
    assert reported[0].startswith(("setting 1: 1.9", "setting 1: 2.0"))
    assert reported[-1].startswith("setting 0: no difference is sure (")


def test_few_rounds_report_nothing() -> None:
    made = with_settings([1.5, 1.0])
    few = [it for it in made.records if (it.round or 0) < 2]
    assert effects(PointData.of(made.head, few)) == []
