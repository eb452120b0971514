"""What is left of the time goes to inconclusive claims, and ends."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders import SimulatedArm, simulated_run
from webdyno.cli.flags import RunFlags
from webdyno.cli.progress import at_terminal
from webdyno.definitions import Catalogue
from webdyno.lab import studies
from webdyno.lab.caller import Caller
from webdyno.lab.measure import Measured
from webdyno.model.study import Claim, Publication
from webdyno.run.folder import RunFolder

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

    def measure_on(path: Path, _: Caller, more_s: None, blocks: Mapping[int, int]) -> Measured:
        assert (path, more_s) == (tmp_path / "x", None)
        asked.append(blocks)
        return Measured(RunFolder.open(path), "finished")

    monkeypatch.setattr(studies, "measure_on", measure_on)
    ends = time.monotonic() + left_s
    shown: list[Measured] = []
    caller = at_terminal(RunFlags(yes=True))
    repeated = studies.Repetition(tmp_path, Catalogue.load(), ends, caller, shown.append)
    assert repeated.decide_more([STUDY])
    assert len(shown) == rounds
    assert len(asked) == rounds
    assert all(6 < blocks[0] <= 12 for blocks in asked)
