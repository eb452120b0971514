"""What limits an arm: by how much its rate falls with less of one thing."""

import pytest

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge import judge
from webdyno.model.intervention import Intervention
from webdyno.report.elasticity import sentences

FULL = SimulatedArm(rate_rps=10_000)


def run(**less: tuple[float, float]) -> SimulatedRun:
    """By resource: the share that was left, and the share of the rate that came of it."""
    arms = {"nginx": FULL} | {
        name: SimulatedArm(rate_rps=10_000 * rate) for name, (_, rate) in less.items()
    }
    made = simulated_run(arms, blocks=10, restart_sd=0.005, slot_sd=0.005)
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
    experiment = made.head.experiment.model_copy(update={"interventions": interventions})
    return SimulatedRun(made.head.model_copy(update={"experiment": experiment}), made.records)


def test_what_the_rate_falls_with_is_the_limit() -> None:
    made = run(cpu=(0.8, 0.8), client=(0.8, 1.0), workers=(0.5, 0.5**0.5))
    found = {it.resource: it for it in judge(made.data).elasticities}
    assert found["servers' CPU"].found.estimate == pytest.approx(1, abs=0.05)
    assert found["client's CPU"].found.estimate == pytest.approx(0, abs=0.05)
    assert found["workers"].found.estimate == pytest.approx(0.5, abs=0.03)
    for it in found.values():
        assert it.found.low < it.found.estimate < it.found.high
    (told,) = sentences(list(found.values()))
    assert told.startswith("nginx: the servers' CPU limits it (")
    assert "the number of its workers limits it in part (0." in told
    assert "the client's CPU doesn't limit it (" in told


def test_where_fewer_connections_ask_less_often_answers_wait_for_something_else() -> None:
    made = run(cpu=(0.8, 1.0), connections=(0.8, 0.8))
    (told,) = sentences(judge(made.data).elasticities)
    assert told.startswith("nginx: the number of connections limits it (")
    assert "): its answers wait for something else than what is tried here; " in told


def test_more_of_a_thing_tells_as_well() -> None:
    made = run(workers=(2.0, 2.0))
    (found,) = judge(made.data).elasticities
    assert found.found.low < found.found.estimate < found.found.high
    assert found.found.estimate == pytest.approx(1, abs=0.05)


def test_without_interventions_there_is_nothing_to_tell() -> None:
    made = simulated_run({"a": FULL, "b": FULL}, blocks=6)
    assert judge(made.data).elasticities == []
    assert list(sentences([])) == []
