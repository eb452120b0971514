"""Where the trials of a search say that the capacity is, how right that is, and what it costs."""

from math import exp, log
from unittest.mock import Mock

import numpy as np
import pytest
from pydantic import ValidationError

from comparison.searches import ROUNDS, Variant, searched
from simulations.searches import Case
from webdyno.comparison import judge
from webdyno.core import capacity as module
from webdyno.core.capacity import Trial, TrialPoint, capacity_of, crossing

VARIANTS = 2
ALLOWED, BRACKET = 0.01, (-0.025, 0.025)
SLOW = Case(1_000, 0.020)


def test_a_judgement_fits_each_search_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = searched(nginx=Variant(2_345), apache=Variant(6_789))  # of no other test
    fit = Mock(wraps=module._ln_likelihood)
    monkeypatch.setattr(module, "_ln_likelihood", fit)
    judge(run.data)
    assert fit.call_count == ROUNDS * VARIANTS


def queue_trials(case: Case, seed: int) -> tuple[TrialPoint, ...]:
    """Trials of four seconds at rates that don't hang on what was seen."""
    queue, trials = case.queue(np.random.default_rng(seed)), []
    for away in (-0.05, 0.0, 0.05):
        times = queue.sojourns_s(case.truth_rps * exp(away), 4.0)
        late = int(np.sum(times > case.within_s))
        trials.append(TrialPoint(away, 4.0, len(times), late))
    return tuple(trials)


def test_skewed_shares_do_not_bias_it_where_rates_do_not_hang_on_them() -> None:
    """Of 4 s each a third has no late request at all at the capacity."""
    found = [
        crossing(queue_trials(SLOW, seed), ALLOWED, BRACKET, SLOW.truth_rps, SLOW.within_s)
        for seed in range(80)
    ]
    away = np.array([each.away for each in found])
    error = away.std() / len(away) ** 0.5
    assert abs(away.mean()) < 3 * error + 0.005
    assert away.std() == pytest.approx(np.mean([each.error for each in found]), rel=0.3)


def test_it_lies_within_a_knee() -> None:
    """Where nothing is late below a rate, and everything above it."""
    trials = (TrialPoint(-0.02, 4.0, 40_000, 0), TrialPoint(0.02, 4.0, 40_000, 40_000))
    found = crossing(trials, ALLOWED, (-0.02, 0.02), 10_000.0, 0.05)
    assert abs(found.away) < 0.02
    assert found.error < 0.02
    assert found.bias <= found.error / 2


def test_longer_trials_know_it_better() -> None:
    short = crossing(queue_trials(SLOW, 1), ALLOWED, BRACKET, SLOW.truth_rps, SLOW.within_s)
    longer = tuple(
        each._replace(length_s=40.0, asked=10 * each.asked, beyond=10 * each.beyond)
        for each in queue_trials(SLOW, 1)
    )
    long = crossing(longer, ALLOWED, BRACKET, SLOW.truth_rps, SLOW.within_s)
    assert long.error < short.error / 2
    assert long.bias < short.bias / 4


def test_failures_have_no_queue_that_shows_how_they_cluster() -> None:
    trials = tuple(
        TrialPoint(away, 4.0, 4_000, round(4_000 * ALLOWED * exp(30 * (away - 0.01))))
        for away in (-0.04, -0.01, 0.01, 0.04)
    )
    found = crossing(trials, ALLOWED, BRACKET, 1_000.0, None)
    assert found.away == pytest.approx(0.01, abs=0.005)
    assert log(found.steepness) == pytest.approx(log(30), abs=0.5)


def test_no_request_is_late_in_any_trial() -> None:
    trials = (TrialPoint(-0.02, 4.0, 4_000, 0), TrialPoint(0.02, 4.0, 4_000, 0))
    found = crossing(trials, ALLOWED, (-0.02, 0.02), 1_000.0, 0.02)
    assert found.away > 0.02
    assert found.error > 0


def test_a_bracket_as_wide_as_the_first_steps_of_a_search_is_no_trouble() -> None:
    trials = (TrialPoint(-1.4, 1.0, 1_000, 0), TrialPoint(1.4, 1.0, 16_000, 16_000))
    found = crossing(trials, ALLOWED, (-1.4, 1.4), 4_000.0, 0.02)
    assert -1.4 < found.away < 1.4
    assert found.error > 0


@pytest.mark.parametrize("length_s", [0.125, 0.5, 4.0])
def test_evenly_spaced_requests_queue_at_once_or_never(length_s: float) -> None:
    """A server of 500 µs a request, by trials as a search makes them."""
    rates = (500.0, 1_000.0, 1_400.0, 1_700.0, 1_900.0, 1_980.0, 2_040.0, 2_200.0, 4_000.0)
    trials = [
        Trial(
            rate_rps=rate,
            length_s=length_s,
            asked=round(rate * length_s),
            beyond=[round(rate * length_s) if rate > 2_000 else 0],
            allowed=[ALLOWED],
            within_s=[0.005],
            evenly_spaced=True,
        )
        for rate in rates
    ]
    assert capacity_of(trials) == pytest.approx(2_000, rel=0.03)
    by_chance = [trial.replace(evenly_spaced=False) for trial in trials]
    assert (capacity_of(by_chance) or 0) < (capacity_of(trials) or 0)


@pytest.mark.parametrize(
    ("beyond", "allowed"),
    [([], []), ([1], [0.0]), ([1], [-0.1]), ([1, 2], [0.01]), ([1], [0.01, 0.01])],
)
def test_a_trial_has_objectives_that_allow_something(
    beyond: list[int | None], allowed: list[float]
) -> None:
    """What is read of a run's folder is divided by it."""
    with pytest.raises(ValidationError, match=r"allowed|objectives"):
        Trial(rate_rps=1, length_s=1, asked=1, beyond=beyond, allowed=allowed)
