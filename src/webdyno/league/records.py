"""What lies in a league's folder: runs by machine, task and date."""

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from webdyno.comparison import question_of
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.files import checked_files, digest_of
from webdyno.core.question import RANKING
from webdyno.core.run import RunHead
from webdyno.core.stack import Stack
from webdyno.core.testbed import Machine
from webdyno.evidence.differences import machine_differences
from webdyno.evidence.point_data import RunData
from webdyno.league.judged import JudgedRun
from webdyno.league.task import key_of
from webdyno.measure.folder import RunFolder, run_folders
from webdyno.measure.session import rounds_are_over

LEAGUE_FOLDER = Path("league")
MACHINE_LETTERS, IDENTITY_LETTERS = 40, 6


@dataclass(frozen=True, eq=False)
class LeagueRun:
    """A run of a league: stacks that were ranked at a task in one sitting."""

    path: Path
    head: RunHead

    @property
    def experiment(self) -> Experiment:
        return self.head.experiment

    @property
    def stacks(self) -> list[str]:
        return list(self.experiment.variants)

    @cached_property
    def key(self) -> str:
        """What it measured: the same of all runs that can be joined."""
        return key_of(self.experiment)

    @cached_property
    def judged(self) -> JudgedRun:
        return JudgedRun(self._records.points[0])

    @cached_property
    def is_over(self) -> bool:
        """Whether all of it was measured."""
        return rounds_are_over(self._records) and not self.is_too_short

    @property
    def is_too_short(self) -> bool:
        """Whether its time ended before its ranks were looked at, so that all of them are open."""
        (data,) = self._records.points
        says_more = data.stop is not None and data.stop.reason != "time"
        if says_more or not rounds_are_over(self._records):
            return False
        return len(data.rounds) < question_of(self.experiment).fewest_rounds

    @cached_property
    def _records(self) -> RunData:
        return RunFolder.open(self.path).data()


@dataclass(frozen=True)
class MeasuredMachine:
    """A machine, and its runs: results of another one, or of itself with another kernel, aren't."""

    machine: Machine
    runs: list[LeagueRun]
    """The newest first."""

    @property
    def name(self) -> str:
        """Its folder, and its pages."""
        return machine_folder(self.machine)

    def finished(self, key: str) -> list[LeagueRun]:
        """Return the runs of a task that were measured to their end, the newest first."""
        return [run for run in self.runs if run.key == key and run.is_over]


def machine_folder(machine: Machine) -> str:
    """Return the name of a machine's folder: the model of its CPUs, and its identity."""
    model = re.sub(r"[^a-z0-9]+", "-", machine.cpu_model.lower()).strip("-")[:MACHINE_LETTERS]
    identity = (machine.identity or "")[:IDENTITY_LETTERS]
    kernel = re.sub(r"[^0-9a-z.]+", "-", machine.kernel.lower())
    return "-".join(filter(None, (model, f"{len(machine.cpus)}cpus", identity, kernel)))


class LeagueFolder:
    """A folder of runs; what was measured to its end is read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed_over: dict[Path, str] = {}
        """Runs that don't count, and why: others may have copied them here."""
        self._over: dict[Path, LeagueRun] = {}

    def runs(self) -> list[LeagueRun]:
        """Return all runs, the newest first, but for those that are passed over."""
        runs = [run for path in run_folders(self.path, 3) if (run := self._run_or_none(path))]
        return sorted(runs, key=lambda run: run.head.started_at, reverse=True)

    def machines(self) -> list[MeasuredMachine]:
        """Return the machines of all runs, that of the newest run first."""
        machines: list[MeasuredMachine] = []
        for run in self.runs():
            of_it = next(
                (each for each in machines if is_same(each.machine, run.head.machine)), None
            )
            if of_it is None:
                machines.append(MeasuredMachine(run.head.machine, [run]))
            else:
                of_it.runs.append(run)
        return machines

    def _run_or_none(self, path: Path) -> LeagueRun | None:
        if path in self.passed_over:
            return None
        try:
            return self._run(path)
        except (UserError, OperationError) as error:
            self.passed_over[path] = str(error)
            return None

    def _run(self, path: Path) -> LeagueRun:
        if path in self._over:
            return self._over[path]
        run = LeagueRun(path, RunFolder.open(path).head)
        if run.experiment.asks.key != RANKING or run.experiment.factors:
            raise UserError(f"{path}: is no ranking of one task")
        if run.is_over:
            self._over[path] = run
        return run


def is_same(one: Machine, other: Machine) -> bool:
    """Whether results of two machines may be joined: they are one, and nothing of it changed."""
    return not machine_differences(one, other)


def sum_of(stack: Stack) -> str:
    """Return what changes with the files that a stack is made of, wherever they lie."""
    services = [role.service for role in stack.services.values()]
    folders = {stack.folder, *(service.folder for service in services)}
    folders |= {its.path_of(its.build.program) for its in services if its.build}
    digest = sha256()
    for folder in sorted(folders, key=lambda folder: folder.parts[-2:]):
        for name, file in checked_files(folder).items():
            if file.is_file():
                digest.update(f"{'/'.join(folder.parts[-2:])}/{name}\0".encode())
                digest.update(digest_of(file))
    return digest.hexdigest()
