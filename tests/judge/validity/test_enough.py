"""Rules about how much was measured."""

import pytest

from builders import SimulatedArm, simulated_run
from judge.validity.broken import ARMS, found_in
from webdyno.judge.validity.enough import samples_for


@pytest.mark.parametrize(("quantile", "needed"), [(0.5, 5), (0.99, 299), (0.999, 2_995)])
def test_samples_follow_the_binomial_bound(quantile: float, needed: int) -> None:
    assert samples_for(quantile) == needed


def test_a_slow_site_has_too_few_answers_for_its_99th_percentile() -> None:
    arms = {"nginx": SimulatedArm(), "apache": SimulatedArm(rate_rps=100)}
    finding = found_in(simulated_run(arms, blocks=6))["few-samples"]
    assert finding.metrics == ["response_p99_us"]
    assert "needs 299" in finding.what


def test_too_few_blocks_are_noted() -> None:
    finding = found_in(simulated_run(ARMS, blocks=5))["few-blocks"]
    assert finding.severity == "note"
    assert "5 finished blocks" in finding.what
