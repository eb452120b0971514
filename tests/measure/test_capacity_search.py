"""The search for a capacity against queues whose capacity is known."""

from math import exp, log

import numpy as np
import pytest

from builders import load_result
from rig.queues import capacity_of_md1, capacity_of_mm1, stays_longer_in_md1
from simulations.queues import Queue, search
from webdyno.core.capacity import Level, Trial, capacity_of, is_at_least, trial_of
from webdyno.core.measure import CapacitySettings
from webdyno.core.objectives import objective
from webdyno.load.interface import AbortRule
from webdyno.measure.capacity_search import Begin, next_trial
from webdyno.measure.capacity_trials import abort_rule

SLO = CapacitySettings(slo=["p99<5ms"])
SERVICE_S = 1e-4
WITHIN_S, ALLOWED = 0.005, 0.01
SEARCHES = 16
TRUTH = capacity_of_mm1(SERVICE_S, WITHIN_S, ALLOWED)


def found(trials: list[Trial]) -> float:
    """The capacity, which there is."""
    rate_rps = capacity_of(trials)
    assert rate_rps
    return rate_rps


@pytest.mark.parametrize("exponential", [True, False])
def test_what_is_found_is_the_truth_on_average(exponential: bool) -> None:
    truth = (capacity_of_mm1 if exponential else capacity_of_md1)(SERVICE_S, WITHIN_S, ALLOWED)
    errors = []
    for seed in range(SEARCHES):
        queue = Queue(SERVICE_S, exponential, np.random.default_rng(seed))
        errors.append(log(found(search(queue, SLO, closed_rps=1 / SERVICE_S)) / truth))
    assert abs(np.mean(errors)) < 0.01
    assert np.std(errors) < 0.025


def test_a_queue_of_known_times() -> None:
    """At a low rate hardly anybody waits; the series' first terms by hand."""
    assert stays_longer_in_md1(10.0, 1e-3, 0.9999e-3 + 1e-3) == pytest.approx(
        1 - (1 - 0.01) * exp(0.01 * 0.9999), rel=1e-6
    )


def test_a_knee_is_found() -> None:
    """Where the share beyond jumps from nothing to all."""
    queue = Queue(SERVICE_S, False, np.random.default_rng(1))
    trials = search(queue, CapacitySettings(slo=["p99<50ms"]), closed_rps=1 / SERVICE_S)
    assert found(trials) == pytest.approx(1 / SERVICE_S, rel=0.03)


@pytest.mark.parametrize("closed_rps", [1.0, 50.0, 700.0, 30_000.0])
def test_it_begins_anywhere(closed_rps: float) -> None:
    errors = [
        log(
            found(search(Queue(SERVICE_S, True, np.random.default_rng(n)), SLO, closed_rps)) / TRUTH
        )
        for n in range(4)
    ]
    assert abs(np.mean(errors)) < 0.03


@pytest.mark.parametrize("share", [0.3, 0.9, 1.0, 1.1, 3.0])
def test_it_leaves_where_the_rounds_before_ended(share: float) -> None:
    errors = []
    for seed in range(SEARCHES):
        queue = Queue(SERVICE_S, True, np.random.default_rng(seed))
        trials = search(queue, SLO, 1 / SERVICE_S, near_rps=share * TRUTH)
        errors.append(log(found(trials) / TRUTH))
    assert abs(np.mean(errors)) < 0.01
    assert np.std(errors) < 0.025


def test_with_less_time_fewer_trials_decide() -> None:
    def took_s(deciding: int) -> float:
        queue = Queue(SERVICE_S, True, np.random.default_rng(1))
        trials = search(queue, SLO, 1 / SERVICE_S, near_rps=TRUTH, deciding=deciding)
        return sum(it.length_s for it in trials)

    assert took_s(deciding=1) < 0.6 * took_s(deciding=4)


def test_a_bad_place_to_begin_costs_a_search_few_trials() -> None:
    """A closed loop says little of a capacity under a strict objective."""
    strict = CapacitySettings(slo=["p99<0.5ms"])

    def trials(near_rps: float | None) -> int:
        queue = Queue(SERVICE_S, True, np.random.default_rng(1))
        return len(search(queue, strict, 1 / SERVICE_S, near_rps=near_rps))

    truth = capacity_of_mm1(SERVICE_S, 5e-4, ALLOWED)
    assert trials(near_rps=truth) < trials(near_rps=None)


def test_a_collapse_is_found_again_where_it_was() -> None:
    for seed in range(4):
        queue = Queue(SERVICE_S, False, np.random.default_rng(seed), collapses_at=7000)
        trials = search(queue, SLO, 1 / SERVICE_S, near_rps=7100)
        assert found(trials) == pytest.approx(7000, rel=0.02)


def test_servers_that_do_not_come_back_are_started_again_after_each_overload() -> None:
    errors = []
    for seed in range(4):
        queue = Queue(SERVICE_S, False, np.random.default_rng(seed), collapses_at=7000)
        trials = search(queue, SLO, closed_rps=1 / SERVICE_S)
        recovery = [it for it in trials if it.purpose == "recovery"]
        assert [(it.beyond[0] or 0) > 0.01 * it.asked for it in recovery] == [True]
        errors.append(log(found(trials) / 7000))
    assert np.max(np.abs(errors)) < 0.02


def test_failures_that_were_not_awaited_decide_nothing() -> None:
    for seed in range(8):
        queue = Queue(SERVICE_S, True, np.random.default_rng(seed))
        trials = search(queue, SLO, closed_rps=1 / SERVICE_S)
        next_to = [
            it.model_copy(
                update={
                    "beyond": [*it.beyond, 0 if it.holds else None],
                    "allowed": [*it.allowed, 0.001],
                }
            )
            for it in trials
        ]
        assert capacity_of(next_to) == capacity_of(trials)
        failing = next(it for it in next_to if not it.holds)
        assert Level(failing.rate_rps, (failing,)).seen[1] == (0, 0, 0.001)


def test_failures_are_unknown_where_what_times_out_was_not_awaited() -> None:
    load, both = load_result(), [objective("failures<0.1%"), objective("p99<50ms")]
    for ended_by, known in [("late", False), ("duration", True)]:
        load = load.model_copy(update={"ended_by": ended_by})
        trial = trial_of(load, 100.0, both, client_limited=False)
        assert [it is not None for it in trial.beyond] == [known, True]


def test_a_trial_is_given_up_when_its_objectives_are_surely_missed() -> None:
    def of(*slo: str) -> AbortRule | None:
        return abort_rule(CapacitySettings(slo=list(slo)).objectives)

    assert of("failures<0.1%") is None
    assert of("p99<50ms", "failures<0.1%") == AbortRule(0.04, 0.05)
    # What is late by the longer time is late by the shorter one, too.
    assert of("p99<50ms", "p50<10ms") == AbortRule(0.04, 0.05)
    assert of("p50<10ms") == AbortRule(0.75, 0.01)
    # A response may go on for long after its first event.
    assert of("ttft p99<50ms", "tpot p99<5ms") is None
    assert of("ttft p99<50ms", "p99<1s") == AbortRule(0.04, 1.0)


def test_beyond_the_client_it_is_at_least() -> None:
    queue = Queue(SERVICE_S, True, np.random.default_rng(1))
    trials = search(queue, SLO, closed_rps=1 / SERVICE_S, client_rps=5000)
    assert is_at_least(trials)
    assert found(trials) == pytest.approx(5000, rel=0.05)
    plain = search(Queue(SERVICE_S, True, np.random.default_rng(1)), SLO, 1 / SERVICE_S)
    assert not is_at_least(plain)


def test_where_nothing_holds_there_is_no_capacity() -> None:
    queue = Queue(0.03, False, np.random.default_rng(1))
    trials = search(queue, SLO, closed_rps=30)
    assert capacity_of(trials) is None
    assert next_trial(trials, SLO, Begin(30)) is None


def test_a_client_that_is_late_at_any_rate_ends_the_search() -> None:
    """Going on to a thousandth of the rate would take an hour."""
    queue = Queue(SERVICE_S, True, np.random.default_rng(1))
    trials = search(queue, SLO, closed_rps=1 / SERVICE_S, client_rps=0)
    assert len(trials) == 4
    assert capacity_of(trials) is None


def test_slow_pages_are_tried_for_long_enough_to_pass() -> None:
    """At 5 requests per second p99 takes a minute to report."""
    queue = Queue(0.1, False, np.random.default_rng(1))
    trials = search(queue, CapacitySettings(slo=["p99<1s"]), closed_rps=10)
    assert found(trials) == pytest.approx(capacity_of_md1(0.1, 1.0, 0.01), rel=0.15)
    assert max(it.length_s for it in trials) > 30


@pytest.mark.parametrize(
    ("text", "within_s", "allowed"),
    [
        ("p99<50ms", 0.05, 0.01),
        ("p99.9 < 1s", 1.0, 0.001),
        ("ttft p90<1s", 1.0, 0.1),
        ("failures<0.1%", None, 0.001),
    ],
)
def test_objectives_are_read(text: str, within_s: float | None, allowed: float) -> None:
    read = objective(text)
    assert read.within_s == within_s
    assert read.allowed == pytest.approx(allowed)


@pytest.mark.parametrize(
    "text",
    [
        "p99",
        "p99>50ms",
        "p99<50",
        "p0<1s",
        "rate<5",
        "failures<2",
        "itl p99<5ms",
        "ttft failures<1%",
    ],
)
def test_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        objective(text)
