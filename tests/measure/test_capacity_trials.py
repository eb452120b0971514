"""The sweeps that stand next to a capacity."""

import pytest
from pydantic import ValidationError

from builders import START, SimulatedVariant, latencies, load_result, run_head, server_use
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.load_result import SendDelay
from webdyno.core.objectives import objective
from webdyno.core.records import SlotRecord
from webdyno.core.sweep import plan_points
from webdyno.measure.budget import reduce_levels
from webdyno.measure.capacity_search import capacity_sweeps, connections_up_to, rates_around
from webdyno.measure.capacity_trials import is_client_limited


def experiment(**more: object) -> Experiment:
    """A search that is to have sweeps next to it, for ten minutes."""
    given = run_head({"apache": "apache-event", "nginx": "nginx"}).experiment
    asked = {"capacity": {"slo": ["p99<50ms"], "sweep_s": "10m"}, "measure": {"seed": 1}}
    return Experiment.model_validate(given.model_dump(exclude_unset=True) | asked | more)


@pytest.mark.parametrize(
    ("median_us", "failed", "late_ms", "limited"),
    [
        (60_000.0, 0, 6.0, False),  # 60 ms instead of 20 ms isn't 6 ms of the client's
        (23_000.0, 0, 6.0, True),
        (60_000.0, 0, 50.0, True),
        (1_000.0, 47, 6.0, False),
        (1_000.0, 9, 6.0, True),  # six came together then
        (60_000.0, 0, 0.1, False),  # it was in time
    ],
)
def test_a_late_client_is_to_blame_for_what_its_delay_explains(
    median_us: float, failed: int, late_ms: float, limited: bool
) -> None:
    load = load_result(SimulatedVariant(throughput_rps=1_000), duration_s=0.3)
    late = SendDelay(p50=4.0, p99=late_ms * 500, max=late_ms * 1_000)
    load = load.model_copy(
        update={
            "loop": "open",
            "latency_us": latencies(300, median_us, 0.01),
            "send_delay_us": late,
            "failures": load.failures.model_copy(update={"status": failed}),
        }
    )
    slot = SlotRecord(
        round=1,
        slot=0,
        variant="nginx",
        phase="trial",
        started_at=START,
        load=load,
        servers=server_use(0.01),
    )
    assert is_client_limited(slot, 1_000.0, [objective("p99<20ms")]) == limited


def test_rates_lie_around_each_capacity() -> None:
    assert rates_around([1000]) == [250, 500, 750, 900, 1000, 1100, 1200]
    both = rates_around([1000, 4000])
    assert both == [250, 500, 750, 900, 1000, 1100, 1200, 2000, 3000, 3600, 4000, 4400, 4800]


def test_rates_around_equal_capacities_are_tried_once() -> None:
    assert rates_around([1000, 1010]) == rates_around([1000])


@pytest.mark.parametrize(
    ("most", "levels"), [(1, [1]), (8, [1, 8]), (64, [1, 8, 64]), (100, [1, 8, 64, 100])]
)
def test_connections_go_up_to_those_of_the_load(most: int, levels: list[int]) -> None:
    assert connections_up_to(most) == levels


def test_the_sweeps_are_experiments_that_share_the_time() -> None:
    found = dict(capacity_sweeps(experiment(), [15_000.0, 50_000.0]))
    for sweep in found.values():
        assert Experiment.model_validate(sweep.model_dump()) == sweep
        assert sweep.capacity is None
        assert sweep.measure.budget_s == 300
    rates, connections = found["rates"], found["connections"]
    assert rates.load.loop == "open"
    assert plan_points(rates)[1].experiment.load.rate_per_s == 7_500
    assert rates.measure.decide_on == "latency_p99_us"
    assert connections.load.loop == "closed"
    assert connections.factors == {"load.connections": [1, 8, 64]}
    assert connections.measure.decide_on == "throughput_rps"


def test_levels_are_excluded_where_time_is_short() -> None:
    rates = dict(capacity_sweeps(experiment(), [15_000.0, 50_000.0]))["rates"]
    (levels,) = reduce_levels(rates, Catalogue.load(), 60.0).factors.values()
    assert 1 <= len(levels) < 7


def test_without_a_capacity_there_are_no_rates_to_go_to() -> None:
    assert list(dict(capacity_sweeps(experiment(), []))) == ["connections"]


def test_nothing_stands_next_to_a_search_unless_asked_for() -> None:
    plain = experiment(capacity={"slo": ["p99<50ms"]})
    assert list(capacity_sweeps(plain, [15_000.0])) == []


def test_factors_and_sweeps_do_not_go_together() -> None:
    with pytest.raises(ValidationError, match=r"capacity\.sweep_s is for capacities of one point"):
        experiment(factors={"load.keepalive": ["always", "never"]})
