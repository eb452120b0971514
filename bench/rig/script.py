"""How each benchmark script runs: its flags, its console, and its end as an exit code."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from rig.options import count, seconds, some_of
from rig.process import BenchError

TABLE_WIDTH = 150
"""Columns of a table that is not printed on a terminal."""

progress = Console(stderr=True, highlight=False)

Work = Callable[[argparse.Namespace, Console], None]


class Script(argparse.ArgumentParser):
    """The command line of a script, whose help shows its texts as they were written."""

    def __init__(self, description: str | None, examples: str) -> None:
        super().__init__(
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def add_choice(self, flag: str, known: Sequence[str], *, none: bool = False) -> None:
        """Add a flag for some of the known names, all by default; `none` is one more if asked."""
        listed = ",".join(known).replace("%", "%%")  # which argparse would fill in
        self.add_argument(
            flag,
            type=some_of([*known, "none"] if none else known),
            default=list(known),
            help=f"some of {listed} (all){', or none' if none else ''}",
        )

    def add_rounds(self, default: int) -> None:
        """Add the flags for how often each client runs, and when."""
        self.add_argument(
            "--rounds", type=count, default=default, help=f"runs of each client ({default})"
        )
        self.add_quiet_wait()

    def add_quiet_wait(self) -> None:
        """Add the flag for when each client runs."""
        self.add_argument(
            "--quiet-wait",
            type=seconds,
            default=0.0,
            metavar="SECONDS",
            help="before each sample wait at most so long until other programs leave its cores (0)",
        )

    def add_growing(self, results: Path, rounds: int = 1) -> None:
        """Add the flags of a script that adds to a file of results, and shows all of it."""
        self.add_argument(
            "--rounds",
            type=lambda text: 0 if text == "0" else count(text),
            default=rounds,
            help=f"runs of each case ({rounds}); 0 shows the table only",
        )
        self.add_argument(
            "--results", type=Path, default=results, help=f"the file that grows ({results})"
        )

    def run(self, work: Work) -> int:
        """Do the work as the command line says and give the exit code."""
        options = self.parse_args()
        console = Console(highlight=False, width=None if sys.stdout.isatty() else TABLE_WIDTH)
        name = self.prog.removesuffix(".py")
        try:
            work(options, console)
        except BenchError as error:
            progress.print(f"{name}: {error}")
            return 1
        except KeyboardInterrupt:
            progress.print(f"{name}: interrupted; what was printed was measured")
            return 130
        return 0
