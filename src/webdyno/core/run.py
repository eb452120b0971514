"""A run's folder: its head, written before any measurement, and where what it holds lies."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import AwareDatetime

from webdyno.core.base import Model
from webdyno.core.experiment import Experiment
from webdyno.core.registry import command
from webdyno.core.testbed import Calibration, Machine

FORMAT: Literal[4] = 4

EXPERIMENT_FILE = "experiment.toml"
RUNS_FOLDER = Path("runs")
PAGE_FILE = "report.html"
SUMMARY_FILE = "summary.csv"
SWEEPS = {"rates": "latency against arrival rate", "connections": "throughput against connections"}
"""Runs that lie in the folder of a search for the capacity: by folder, what they show."""
CATALOGUE_FOLDER = "catalog"
"""What a run's folder holds so that the run can be repeated elsewhere."""
ROUNDS_FOLDER = "rounds"


EXPLAIN_FOLDER = "explain"
"""Runs that explain the one in whose folder they lie."""


def profile_run(folder: Path, point: int) -> Path:
    """Return the folder of the profile rounds of a gate's point."""
    return folder / EXPLAIN_FOLDER / f"profile-{point}"


CONFIRMATION_FOLDER = "confirmation"
"""The second measurement of what failed in the gate in whose folder it lies."""


def round_path(folder: Path, point: int, round_number: int) -> Path:
    """Return the folder of a round: what its servers were started with, and what they said."""
    return folder / ROUNDS_FOLDER / f"{point:03d}-{round_number:03d}"


def folder_under_runs(name: str, began: datetime) -> Path:
    """Return the folder of what nobody gave one, by when it began."""
    return RUNS_FOLDER / f"{began:%Y-%m-%d-%H%M%S}-{name}"


def variant_folder(variant: str) -> str:
    """Return a variant's folder in a round, inside that whatever the variant is called."""
    name = quote(variant, safe=" ")
    return name.replace(".", "%2E") if name.startswith(".") else name


class RunHead(Model):
    """`run.json` of a run's folder."""

    format: Literal[4] = FORMAT
    webdyno_version: str
    experiment_name: str
    experiment: Experiment
    """Resolved: defaults and --set applied, seed drawn."""
    started_at: AwareDatetime
    machine: Machine
    """The one with the servers."""
    hosts: dict[str, Machine] = {}
    """By name: all that take part, where there are several."""
    versions: dict[str, dict[str, str]]
    """By variant, by service: what the server says its version is."""
    load_generator: str
    calibration: Calibration | None = None
    """What the client could do on this machine and testbed; None when it was never measured."""

    def cpus_of(self, variant: str) -> float:
        """How many CPUs a variant's servers have, of those of the machine with the servers."""
        return self.experiment.variants[variant].cpus or len(self.machine.split.servers)

    def repeat_command(self, folder: Path) -> str:
        """Return the command that repeats a run from its folder alone, at all of its points."""
        every_level = ["--full"] if self.experiment.factors else []
        catalogue = ("--catalog", folder / CATALOGUE_FOLDER)
        return command("run", folder / EXPERIMENT_FILE, *catalogue, *every_level)

    @property
    def command_elsewhere(self) -> str | None:
        """The command that asks the same of any machine; None where that takes the run's folder."""
        return self.experiment.asks.command_elsewhere(self.experiment)


PROFILE_FOLDER = "profile"
MOST_STACKS_BYTES = 64 * 2**20
MOST_DIGITS = 18
"""Of a number of samples. Whoever made the file, more are none."""
DEEPEST = 200
"""Calls of a stack; perf keeps 127, unless the kernel is set to more."""


def stacks_file(run: Path, variant: str) -> Path:
    """Return where a variant's sampled stacks of calls are kept, `program;call;call 12` a line.

    Programs that draw flame graphs (FlameGraph, inferno, speedscope) read the same.
    """
    return run / PROFILE_FOLDER / f"{variant_folder(variant)}.folded"


def read_stacks(text: str) -> Counter[str]:
    """Count the samples of each stack, as deep as is kept; lines that are none are excluded."""
    stacks = Counter[str]()
    for line in text.split("\n"):
        stack, _, count = line.rpartition(" ")
        if stack and count.isdecimal() and len(count) <= MOST_DIGITS and int(count):
            stacks[";".join(stack.split(";", DEEPEST)[:DEEPEST])] += int(count)
    return stacks


def written_stacks(stacks: Mapping[str, int]) -> str:
    return "".join(f"{stack} {count}\n" for stack, count in sorted(stacks.items()))
