"""What is left of the time goes to undecided claims, and ends."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders import SimulatedArm, simulated_run
from webdyno.cli.exits import Exit
from webdyno.cli.flags import RunFlags
from webdyno.cli.studies import _decide_more
from webdyno.model.study import Claim, Publication

CLAIM = Claim(
    says="nginx is faster",
    published="",
    experiment="x",
    arms=["nginx"],
    against="apache",
    above=2.1,
)
STUDY = Publication(name="s", title="t", setting="here", experiments=["x"], claims=[CLAIM])


@pytest.mark.parametrize(("left_s", "rounds"), [(1000.0, 1), (0.0, 0)])
def test_a_round_that_brings_nothing_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_s: float, rounds: int
) -> None:
    arms = {"apache": SimulatedArm(rate_rps=20_000), "nginx": SimulatedArm(rate_rps=40_000)}
    simulated = simulated_run(arms, blocks=6, restart_sd=0.1, slot_sd=0.1)
    simulated.stored(tmp_path / "x")
    asked: list[Mapping[int, int]] = []

    def measure_on(path: Path, run: RunFlags, more_s: None, blocks: Mapping[int, int]) -> Exit:
        assert (path, more_s, run.yes) == (tmp_path / "x", None, True)
        asked.append(blocks)
        return Exit.OK

    monkeypatch.setitem(_decide_more.__globals__, "measure_on", measure_on)
    ends = time.monotonic() + left_s
    assert _decide_more([STUDY], tmp_path, ends, {}, yes=True)
    assert len(asked) == rounds
    assert all(6 < blocks[0] <= 12 for blocks in asked)
