"""Counts the files of webdyno that a slot passes on its way to disk, by the functions called.

    .venv/bin/python bench/slot_files.py

Prints those between the order to the load generator and the record on disk, then those that the
whole way takes from the experiment to the end of the first block. What is only imported, such as
types, is not counted.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import webdyno
from webdyno.definitions import Catalogue, settings
from webdyno.model.records import SlotRecord
from webdyno.run.session import begin_run, measure

HOME = Path(webdyno.__file__).parent
QUICK = (
    "measure.slot_s=0.1",
    "measure.warmup_s=0.1",
    "measure.slots_per_arm=2",
    "measure.budget_s=1",
)


class EndOfBlock(Exception):  # noqa: N818 (nothing is wrong)
    """One block is enough."""


class Tracer:
    """Follows a run as its progress, and notes the files of the functions that are called."""

    def __init__(self) -> None:
        """Begin with nothing called."""
        self.all: set[str] = set()
        self.by_slots: set[str] = set()
        self._in_slot = False

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Note what is called inside."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(HOME)) and file.endswith(".py"):
            self.all.add(file)
            if self._in_slot:
                self.by_slots.add(file)

    def pilot_begins(self, *_: object) -> None:
        """Nothing of the pilot's is counted."""

    def pilot_ends(self, *_: object) -> None:
        """Nothing of the pilot's is counted."""

    def block_begins(self, *_: object) -> None:
        """Nothing of interest."""

    def slot_begins(self, *_: object) -> None:
        """Listen."""
        self._in_slot = True

    def slot_ends(self, _: SlotRecord) -> None:
        """Stop listening."""
        self._in_slot = False

    def block_ends(self, *_: object) -> None:
        """End the run."""
        raise EndOfBlock

    def notice(self, text: str) -> None:
        """Pass on what the run says."""
        sys.stderr.write(f"{text}\n")


def main() -> None:
    """Run one block of the first duel, and print the files."""
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder, tracer.tracing():
        catalogue = Catalogue.load()
        experiment = catalogue.experiment("static-hello", settings(QUICK))
        run = begin_run("count", experiment, catalogue, Path(folder) / "run")
        with run, suppress(EndOfBlock):
            measure(run, tracer)
    for what, files in (("a slot", tracer.by_slots), ("experiment to block", tracer.all)):
        names = sorted(str(Path(file).relative_to(HOME)) for file in files)
        sys.stdout.write("\n    ".join([f"{what}: {len(names)} files", *names]) + "\n")


if __name__ == "__main__":
    main()
