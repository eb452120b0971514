"""What `webdyno report` takes besides the folder of one run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from webdyno.core.exit_codes import Exit
from webdyno.interfaces.cli.machines import FleetSource, SpreadSource
from webdyno.interfaces.cli.reported.history import HistorySource


class Reportable(Protocol):
    """A kind of files and folders from which reports are made."""

    def has(self, paths: Sequence[Path]) -> bool:
        """Whether these are such."""

    def report(self, paths: Sequence[Path], formats: Sequence[str], output: Path | None) -> Exit:
        """Print what they say, and write it in some formats; raise UserError for others."""


SOURCES: list[Reportable] = [HistorySource(), FleetSource(), SpreadSource()]
"""All of them; the first one decides that has the paths."""
