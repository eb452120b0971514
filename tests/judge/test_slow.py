"""Slow stretches: found with their length, level and period, and not where there are none."""

from dataclasses import replace

import numpy as np
import pytest

from builders import SimulatedArm, simulated_run
from judge.stretches import Truth, stretch
from webdyno.judge.judgement import judge
from webdyno.judge.long_look import look_at
from webdyno.judge.point_data import PointData
from webdyno.judge.slow import slow_in
from webdyno.model.judgement import Verdict

RUNS = 15
SLOW = Truth(every_s=6.0, stall_s=1.0, looked_s=27.0, slow_level=0.4)


@pytest.mark.parametrize("level", [0.2, 0.4, 0.6])
def test_a_slow_second_in_six_is_found(level: float) -> None:
    for seed in range(RUNS):
        look = look_at(stretch(replace(SLOW, slow_level=level), seed=seed))
        assert look.stalls is None
        assert look.slow is not None
        assert look.slow.level == pytest.approx(level, abs=0.05)
        assert look.slow.stretches.count in {4, 5}
        assert look.slow.stretches.length_s == pytest.approx(1.0, abs=0.1)
        assert look.slow.stretches.every_s is not None
        assert look.slow.stretches.every_s.estimate == pytest.approx(6.0, abs=0.1)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_noise_isnt_slow(noise: float, correlation: float) -> None:
    rng, accused, alone = np.random.default_rng(1), 0, stretch(Truth()).replace(samples=[])
    for _ in range(100):
        logs = np.zeros(800)
        for n, fresh in enumerate(rng.normal(0, noise * (1 - correlation**2) ** 0.5, len(logs))):
            logs[n] = correlation * logs[n - 1] + fresh
        responses = rng.poisson(500 * np.exp(logs)).tolist()
        accused += bool(slow_in(alone.replace(responses=responses), []))
    assert accused <= 2


@pytest.mark.parametrize("truth", [replace(SLOW, slow_level=0.0), Truth(drifts_to=0.6)])
def test_neither_stalls_nor_drifts_are_slow_stretches(truth: Truth) -> None:
    assert not any(look_at(stretch(truth, seed=seed)).slow for seed in range(RUNS))


@pytest.mark.parametrize("evidence", [{"waited": True}, {"stolen": True}])
def test_what_others_slowed_isnt_the_servers_own(evidence: dict[str, bool]) -> None:
    assert look_at(stretch(replace(SLOW, **evidence))).slow is None


def test_slow_stretches_count_against_the_verdict() -> None:
    run = simulated_run({"nginx": SimulatedArm(), "apache": SimulatedArm()}, slot_sd=0.005)
    judged = judge(PointData.of(run.head, [*run.records, stretch(SLOW, arm="apache")]))
    rate = judged.comparisons[0]
    assert rate.verdict is Verdict.UNDECIDED
    assert [bias.cause for bias in rate.biases] == ["slow-stretches"]
    (said,) = [it for it in judged.findings if it.rule == "slow-stretches"]
    assert "slow times of 1" in said.what
    assert "% of the usual throughput" in said.what
