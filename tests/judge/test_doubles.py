"""Arms that are defined like the baseline."""

import pytest

from builders import SimulatedArm, simulated_run
from webdyno.judge import judge
from webdyno.model.judgement import Comparison, Judgement, Verdict


def judged(arms: dict[str, SimulatedArm], noise: float, blocks: int = 8) -> Judgement:
    """The judgement of arms, of which those with the same stack are doubles."""
    run = simulated_run(arms, blocks=blocks, restart_sd=noise, slot_sd=noise)
    return judge(run.head, run.records)


def by_rate(judgement: Judgement) -> dict[str, Comparison]:
    """The comparisons of rates by arm."""
    return {c.a: c for c in judgement.comparisons if c.metric == "rate_rps"}


def test_the_noise_between_equals_is_the_smallest_difference_that_counts() -> None:
    arms = {
        "nginx": SimulatedArm(),
        "again": SimulatedArm(),
        "apache": SimulatedArm(stack="apache", rate_rps=20_000),
    }
    found = by_rate(judged(arms, noise=0.05))
    assert found["again"].same_arm
    assert not found["apache"].same_arm
    assert found["again"].ratio is not None
    half_width = found["again"].ratio.high / found["again"].ratio.estimate - 1
    assert half_width > 0.02
    assert found["apache"].delta == pytest.approx(half_width)
    assert found["apache"].verdict is Verdict.SLOWER
    assert found["apache"].ratio is not None
    assert found["apache"].ratio.confidence == 0.95


def test_on_a_quiet_machine_delta_stays_at_two_per_cent() -> None:
    arms = {
        "nginx": SimulatedArm(),
        "again": SimulatedArm(),
        "apache": SimulatedArm(stack="apache"),
    }
    assert by_rate(judged(arms, noise=0.002))["apache"].delta == 0.02


def test_equals_that_come_out_different_widen_delta_and_are_told() -> None:
    arms = {
        "nginx": SimulatedArm(),
        "again": SimulatedArm(rate_rps=44_000),
        "apache": SimulatedArm(stack="apache", rate_rps=42_000),
    }
    judgement = judged(arms, noise=0.003)
    found = by_rate(judgement)
    assert found["apache"].delta == pytest.approx(0.1, abs=0.015)
    assert found["apache"].verdict is Verdict.EQUIVALENT
    finding = next(
        f for f in judgement.findings if f.rule == "same-arm" and "rate_rps" in f.metrics
    )
    assert finding.severity == "note"
    assert "defined like nginx" in finding.what


def test_only_equals_are_compared_as_usual() -> None:
    judgement = judged({"nginx": SimulatedArm(), "again": SimulatedArm()}, noise=0.003)
    assert judgement.verdict is Verdict.EQUIVALENT
    assert by_rate(judgement)["again"].same_arm
    assert judgement.findings == []
