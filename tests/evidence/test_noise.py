"""On a noisy machine: the truth lies in the intervals, and the intervals say something."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from evidence.noisy_runs import noisy_runs
from webdyno.comparison import judge
from webdyno.core.base import Interval
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.records import SlotRecord
from webdyno.evidence.noise import CHANCE, at_equal_cpu
from webdyno.evidence.point_data import PointData

KNOWN = [name for name, (_, truth) in noisy_runs().items() if truth]
OF_DIFFERENT_PROGRAMS = [name for name, (_, truth) in noisy_runs().items() if not truth]
LOADED = [name for name in KNOWN if name.startswith("r-")]


def found(name: str) -> Judgement:
    return judge(noisy_runs()[name][0])


def on(judgement: Judgement, metric: str) -> Comparison:
    (comparison,) = (it for it in judgement.comparisons if it.metric == metric)
    return comparison


def truth_of(name: str, metric: str) -> float:
    truth = noisy_runs()[name][1]
    assert truth
    return truth if metric == "throughput_rps" else 1 / truth


def half_width(interval: Interval | None) -> float:
    assert interval
    return sqrt(interval.high / interval.low) - 1


@pytest.mark.parametrize("metric", ["throughput_rps", "server_cpu_us"])
def test_the_truth_lies_in_the_deciding_interval(metric: str) -> None:
    held = []
    for name in KNOWN:
        interval = on(found(name), metric).decisive
        assert interval
        held.append(interval.low <= truth_of(name, metric) <= interval.high)
    assert sum(held) >= len(held) - 1


def test_a_host_that_steals_now_and_then_leaves_an_answer() -> None:
    assert found("quiet-host-steal").verdict is Verdict.SLOWER


@pytest.mark.parametrize("name", LOADED)
def test_a_load_of_12_leaves_an_answer(name: str) -> None:
    """Others had 67 to 83% of the servers' CPUs."""
    judgement = found(name)
    assert half_width(on(judgement, "throughput_rps").decisive) < 0.03
    if truth_of(name, "throughput_rps") < 1:
        assert judgement.verdict is Verdict.SLOWER
    else:
        assert judgement.verdict in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("name", OF_DIFFERENT_PROGRAMS)
def test_a_large_difference_among_neighbours(name: str) -> None:
    interval = on(found(name), "throughput_rps").decisive
    assert interval
    ahead = interval.estimate if interval.estimate > 1 else 1 / interval.estimate
    assert ahead > 2.8
    assert half_width(interval) < 0.35


def test_values_at_equal_cpu_time_have_the_level_that_was_measured() -> None:
    data, _ = noisy_runs()["r-315-5"]
    equal = at_equal_cpu(data)
    assert equal
    values = [value for mine in equal.values.values() for value in mine.values()]
    rates = [slot.load.throughput_rps for slot in data.slots]
    assert exp(np.log(values).mean()) == pytest.approx(exp(np.log(rates).mean()), rel=0.2)


def test_servers_that_leave_cpus_unused_are_compared_as_measured() -> None:
    """One thread on two CPUs: per second of CPU time it looks as fast as two threads."""
    data, _ = noisy_runs()["r-315-5"]
    records = [_with_idle(it, 0.5) if isinstance(it, SlotRecord) else it for it in data.records]
    assert at_equal_cpu(data)
    assert at_equal_cpu(PointData.of(data.head, records)) is None


def _with_idle(slot: SlotRecord, idle_s: float) -> SlotRecord:
    assert slot.readings
    host = slot.readings.host
    servers = host.servers.replace(idle_s=host.servers.idle_s + idle_s)
    readings = slot.readings.replace(host=host.replace(servers=servers))
    return slot.replace(readings=readings)


@pytest.mark.parametrize("rounds", [6, 12, 30])
@pytest.mark.parametrize("systematic", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_what_is_beyond_chance_covers_interference_that_follows_a_variant(
    rounds: int, systematic: float
) -> None:
    """Interference takes all of its share from a ratio of 1; `systematic`: in standard errors."""
    rng = np.random.default_rng(rounds)
    runs = 5_000
    more = 0.2 * (rng.normal(size=(runs, rounds)) + systematic / rounds**0.5)
    d = -more + rng.normal(0, 0.1, (runs, rounds))
    centre, share = d.mean(1), more.mean(1)
    reach = stats.t.ppf(0.975, rounds - 1) * d.std(1, ddof=1) / rounds**0.5
    chance = stats.t.ppf((1 + CHANCE) / 2, rounds - 1) * more.std(1, ddof=1) / rounds**0.5
    high = centre + reach + np.maximum(share - chance, 0)
    low = centre - reach - np.maximum(-share - chance, 0)
    assert ((low <= 0) & (high >= 0)).mean() > 0.95


def test_the_chance_of_a_verdict_on_equals() -> None:
    """Of the runs with equal variants, none is called different."""
    equals = [name for name in KNOWN if not log(truth_of(name, "throughput_rps"))]
    assert len(equals) == 7
    verdicts = {found(name).verdict for name in equals}
    assert verdicts <= {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}
