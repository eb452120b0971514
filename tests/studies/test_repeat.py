"""What is left of the time goes to inconclusive claims, and ends."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from webdyno import studies
from webdyno.config import Catalogue
from webdyno.core.study import Claim, Publication
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.caller import Caller
from webdyno.launch.measure import MeasuredRun
from webdyno.measure.folder import RunFolder

CLAIM = Claim(
    says="nginx is faster",
    published="",
    experiment="x",
    variants=["nginx"],
    against="apache",
    above=2.1,
)
STUDY = Publication(name="s", title="t", setting="here", experiments=["x"], claims=[CLAIM])


@pytest.mark.parametrize(("left_s", "batches"), [(1000.0, 1), (0.0, 0)])
def test_a_batch_that_brings_nothing_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_s: float, batches: int
) -> None:
    variants = {
        "apache": SimulatedVariant(throughput_rps=20_000),
        "nginx": SimulatedVariant(throughput_rps=40_000),
    }
    simulated = simulated_run(variants, rounds=6, restart_sd=0.1, slot_sd=0.1)
    simulated.stored(tmp_path / "x")
    asked: list[Mapping[int, int]] = []

    def measure_on(path: Path, _: Caller, more_s: None, rounds: Mapping[int, int]) -> MeasuredRun:
        assert (path, more_s) == (tmp_path / "x", None)
        asked.append(rounds)
        return MeasuredRun(RunFolder.open(path), "finished")

    monkeypatch.setattr(studies, "measure_on", measure_on)
    ends = time.monotonic() + left_s
    shown: list[MeasuredRun] = []
    caller = at_terminal(RunFlags(yes=True))
    repeated = studies.Repetition(tmp_path, Catalogue.load(), ends, caller, shown.append)
    assert repeated.decide_more([STUDY])
    assert len(shown) == batches
    assert len(asked) == batches
    assert all(6 < rounds[0] <= 12 for rounds in asked)
