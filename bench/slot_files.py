"""Counts the files of webdyno that a slot passes on its way to disk, by the functions called.

    .venv/bin/python bench/slot_files.py

Prints those between the order to the load generator and the record on disk, then those that the
whole way takes from the experiment to the end of the first round. What is only imported, such as
types, is not counted.
"""

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from rig.calls import CalledFiles, listed
from webdyno.config import Catalogue, read_overrides
from webdyno.core.records import SlotRecord
from webdyno.measure.session import begin_run, measure_run

QUICK = (
    "measure.slot_s=0.1",
    "measure.warmup_s=0.1",
    "measure.slots_per_variant=2",
    "measure.budget_s=1",
)


class EndOfRound(Exception):  # noqa: N818 (nothing is wrong)
    """One round is enough."""


class Steps(CalledFiles):
    """Follows a run as its progress, and knows what slots pass."""

    def __init__(self) -> None:
        """Begin outside of any slot."""
        super().__init__()
        self.by_slots: set[str] = set()
        self._in_slot = False

    def called(self, file: str) -> None:
        """Take down a file, twice in a slot."""
        super().called(file)
        if self._in_slot:
            self.by_slots.add(file)

    def pilot_begins(self, *_: object) -> None:
        """Nothing of the pilot's is counted."""

    def pilot_ends(self, *_: object) -> None:
        """Nothing of the pilot's is counted."""

    def round_begins(self, *_: object) -> None:
        """Nothing of interest."""

    def slot_begins(self, *_: object) -> None:
        """Listen."""
        self._in_slot = True

    def slot_ends(self, _: SlotRecord) -> None:
        """Stop listening."""
        self._in_slot = False

    def round_ends(self, *_: object) -> None:
        """End the run."""
        raise EndOfRound

    def answers(self, *_: object) -> None:
        """Nothing of interest."""

    def long_look_begins(self, *_: object) -> None:
        """Nothing of interest."""

    def long_look_goes_on(self, *_: object) -> None:
        """Nobody watches."""

    def long_look_ends(self, *_: object) -> None:
        """Nothing of interest."""

    def detail(self, text: str) -> None:
        """Nothing of interest."""

    def notice(self, text: str) -> None:
        """Pass on what the run says."""
        sys.stderr.write(f"{text}\n")


def main() -> None:
    """Run one round of the first duel, and print the files."""
    steps = Steps()
    with tempfile.TemporaryDirectory() as folder, steps.tracing():
        catalogue = Catalogue.load()
        experiment = catalogue.experiment("static-hello", read_overrides(QUICK))
        run = begin_run("count", experiment, catalogue, Path(folder) / "run")
        with run, suppress(EndOfRound):
            measure_run(run, steps)
    sys.stdout.write(listed("a slot", steps.by_slots) + listed("experiment to round", steps.all))


if __name__ == "__main__":
    main()
