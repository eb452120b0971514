"""Searches for capacities on real servers, ended after some rounds."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median

import pytest

import truth
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.records import RoundRecord, SlotRecord
from webdyno.core.run import RunHead
from webdyno.launch.caller import LineProgress
from webdyno.measure.folder import RunFolder
from webdyno.measure.session import begin_run, measure_run

WITHIN_US = 5_000


class Rounds(LineProgress):
    """Somebody presses Ctrl-C after some rounds."""

    def __init__(self, rounds: int, head: RunHead) -> None:
        super().__init__(head, print)
        self.rounds = rounds

    def round_ends(self, ended: RoundRecord, *_: object) -> None:
        """Press it."""
        if ended.round >= self.rounds:
            raise KeyboardInterrupt


def searched(
    reported: Mapping[str, object], rounds: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> RunFolder:
    """Search in so many rounds; skip the test where the machine wakes up too late for it."""
    with truth.own_program() as program:
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        catalogue = Catalogue.load([truth.CATALOGUE])
        experiment = read_experiment(CommandLine(dict(reported), {}), [], catalogue)
        with (
            begin_run("capacity", experiment, catalogue, folder) as run,
            suppress(KeyboardInterrupt),
        ):
            measure_run(run, Rounds(rounds, run.head))
    if late := woken_late(run):
        pytest.skip(f"half of the trials' requests were sent up to {late:.0f} µs late or more")
    return run


def woken_late(run: RunFolder) -> float | None:
    """Report a machine whose threads wake up too late for the objective."""
    slots = (slot for slot in run.records() if isinstance(slot, SlotRecord) and slot.trial)
    usual = median(slot.load.send_delay_us.p99 or 0.0 for slot in slots)
    return usual if usual > WITHIN_US / 4 else None
