"""What each setting does, from simulated arms whose truth is known."""

import numpy as np
import pytest

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge.effects import effects
from webdyno.judge.point_data import PointData
from webdyno.model.design import Design
from webdyno.model.metrics import metric_rule
from webdyno.report.effects import sentences
from webdyno.search.design import two_level_design

RATE = metric_rule("rate_rps")


def run(true: list[float], beyond: float = 1.0, noise: float = 0.01) -> tuple[SimulatedRun, Design]:
    """Settings that multiply the rate by so much; the first two together by `beyond` more."""
    names = [f"setting {number}" for number in range(len(true))]
    levels = {f"arm {number}": list(row) for number, row in enumerate(two_level_design(len(true)))}
    arms = {}
    for arm, row in levels.items():
        rate = 10_000 * float(np.prod([it for it, on in zip(true, row, strict=True) if on] or [1]))
        rate *= beyond if len(row) > 1 and row[0] and row[1] else 1
        arms[arm] = SimulatedArm(rate_rps=rate)
    made = simulated_run(arms, blocks=10, restart_sd=noise, slot_sd=noise)
    return made, Design(settings=names, levels=levels)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_what_a_setting_does_is_found(count: int) -> None:
    true = [1.5, 1.0, 0.8, 1.1, 1.0][:count]
    made, design = run(true)
    found = {it.settings[0]: it for it in effects(made.data, design, RATE)[:count]}
    for number, ratio in enumerate(true):
        effect = found[f"setting {number}"]
        assert effect.ratio.estimate == pytest.approx(ratio, rel=0.03)
        assert effect.ratio.low < ratio < effect.ratio.high
        assert effect.is_sure == (ratio != 1)


def test_what_two_do_beyond_what_each_does_is_found() -> None:
    made, design = run([1.5, 1.2], beyond=1.3)
    *alone, together = effects(made.data, design, RATE)
    assert [it.settings for it in alone] == [["setting 0"], ["setting 1"]]
    assert together.is_sure
    assert together.ratio.estimate == pytest.approx(1.3**0.5, rel=0.02)
    told = list(sentences([*alone, together]))
    assert "setting 0 together with setting 1: 1.1" in told[-1]
    assert told[-1].endswith("beyond what each does alone")


def test_what_does_nothing_is_called_unsure() -> None:
    made, design = run([1.0, 2.0])
    told = list(sentences(effects(made.data, design, RATE)))
    assert told[0].startswith(("setting 1: 1.9", "setting 1: 2.0"))
    assert told[-1].startswith("setting 0: no difference is sure (")


def test_few_blocks_tell_nothing() -> None:
    made, design = run([1.5, 1.0])
    few = [it for it in made.records if (it.block or 0) < 2]
    assert effects(PointData.of(made.head, few), design, RATE) == []
